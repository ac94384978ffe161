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
    /// Waiting processors are not woken when a home is named.
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
}
