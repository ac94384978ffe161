//! Seeded bugs: a simulator that finds nothing proves nothing until it has been seen to find something. The engine and the tables carry no
//! switches; the simulator's own world does wrong what a driver could do wrong.

/// One wrong thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A write notice is not put on the list.
    NoticeDropped,
    /// The home answers a flush before it applies the diff.
    AckBeforeApply,
    /// The home grants its frame, with stores that it has not released.
    FrameGranted,
    /// A mutex is given up before the release's flushes are acknowledged.
    ReleaseTooEarly,
    /// Fetches are executed directly where flushes are messages.
    FetchOvertakes,
    /// Messages between two nodes overtake each other.
    Reordered,
    /// An acquire goes on without obeying its notices.
    NoticesIgnored,
    /// A flush leaves the twin as it was while other views go on writing.
    TwinNotRefreshed,
    /// An update of another node goes to the frame and not to the twin.
    UpdateMissesTwin,
    /// A page that comes overwrites the frame, local stores included.
    MergeInstalls,
    /// A flush is skipped though the view has other threads that may have stored since.
    SkipWithThreads,
    /// Waiting processors are not woken: where a unit has a home, when that is named.
    NoWake,
    /// Who waits for a condition gives up the mutex before it knows to be in the queue.
    UnlockBeforeQueued,
    /// Messages between copies of equal standing are executed under the locks of both.
    EqualsUnderLock,
    /// A signal handler of the program runs while a release waits.
    HandlerInRelease,
    /// A processor goes on before it has the mutex.
    LockNotAwaited,
    /// A mutex is handed over without a release, to a processor of another view.
    HandedTooFar,
    /// A view's second thread goes on while the first still obeys the notices.
    AcquireNotExcluded,

    // Of the lazy engine.
    /// Diffs are applied in the order opposite to that of their stamps.
    DiffsReversed,
    /// Diffs that come do not go to the twin.
    DiffMissesTwin,
    /// A diff that is made while the open interval writes leaves the twin as it was.
    DiffNotRefreshed,
    /// An answer has all diffs of the writer, also those behind the first that has everything that was asked for.
    AnswerGoesOn,
    /// A page is sent with the stores of the open interval.
    BaseFromFrame,
    /// A page is sent before the diff that is owed is made.
    BaseBeforeDiff,
    /// An interval ends, and its view keeps the right to write.
    CloseKeepsRight,
    /// A write fault gives the right before the twin is made.
    RightBeforeTwin,
    /// A notice leaves the diff that is owed unmade, and later stores go into it.
    OwedAcrossNotice,
    /// Others are told of an interval before its units are closed.
    ToldTooEarly,
    /// A release that finds nothing to do does not wait for that of another thread of the node.
    EmptyReleaseHurries,
    /// A thread asks for diffs while another of the node has obeyed some notices of an acquire, and not all.
    FaultDuringAcquire,
    /// The manager of an object does not keep what a releaser knows.
    ReleaseUntold,
    /// Likewise of the heap, when memory is freed.
    FreeUntold,
    /// Likewise of the threads, when one is made or ends.
    ThreadUntold,
    /// A release passes on the node's own intervals, and not those that it has acquired.
    OwnNewsOnly,
    /// A request that brings a time without its intervals is taken for one with them.
    AskTakenForNews,
    /// A collection does not complete the copies that others count on.
    NothingKept,
    /// A collection drops a copy that lacks something, though this node has written it in an interval that is not collected.
    KeepForgetsOwn,
    /// A collection forgets what is owed, though the open interval writes and has its twin.
    OwedForgotten,
    /// A copy is taken to lack what is collected by the time of its notices, and not by the intervals that are collected.
    CollectByTime,
    /// A node drops before all have completed their copies.
    DroppedTooEarly,
    /// A node forgets before all have dropped.
    ForgottenTooEarly,
    /// A thread outside the barrier faults while the others of its node collect.
    FaultInCollection,
    /// Faults of a node wait as soon as one of its processors collects.
    FaultsHeldTooEarly,
    /// A signal handler of the program runs while its thread is at a meeting of a collection.
    HandlerInCollection,
}
