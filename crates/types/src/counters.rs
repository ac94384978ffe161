//! What is counted and timed, with the stable names that `--stats` writes.

macro_rules! names {
    ($(#[$of:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum $kind { $($(#[$doc])* $variant,)* }

        impl $kind {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();
            /// The stable name, as in the JSON of `--stats`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

names! {
    /// A counted event. docs/statistics.md describes each.
    Counter {
        /// Explicit messages between nodes; over `shm`, operations one node ran on another's segment.
        Messages = "messages",
        /// Bytes that crossed between nodes: pages, diffs and message headers.
        Bytes = "bytes",
        /// Loads that faulted, each counted once however often it had to wait.
        ReadFaults = "read_faults",
        /// Stores that faulted, likewise.
        WriteFaults = "write_faults",
        /// Whole pages that came from another node.
        PageTransfers = "page_transfers",
        /// Pages opened ahead of a sequential read.
        PagesAhead = "pages_ahead",
        /// Of these, and of those open already, the ones that the read went on behind.
        PagesAheadFollowed = "pages_ahead_followed",
        /// Pages that an acquire fetched anew instead of closing them.
        PagesRefreshed = "pages_refreshed",
        /// Twins made.
        Twins = "twins",
        /// Diffs sent to a home on another node.
        Diffs = "diffs",
        /// Bytes of those diffs, as encoded.
        DiffBytes = "diff_bytes",
        /// Diffs of other nodes applied to a copy (tmk).
        DiffsFetched = "diffs_fetched",
        /// Collections of intervals and diffs, by each node (tmk).
        Collections = "collections",
        /// Diffs of incoming pages against the twin (two-way diffs).
        IncomingDiffs = "incoming_diffs",
        /// Write notices sent, one for each unit and destination.
        WriteNotices = "write_notices",
        /// Diffs that a home passed on to a sharer (protocols that update).
        Updates = "updates",
        /// Messages saved because several went to one node together: diffs of one release, and what answers them.
        MessagesJoined = "messages_joined",
        /// Mappings taken away while their programs computed (protocols that invalidate at once).
        Revocations = "revocations",
        /// Units that went into exclusive mode.
        ExclusiveEntries = "exclusive_entries",
        /// Units that left exclusive mode because another node asked.
        ExclusiveBreaks = "exclusive_breaks",
        /// Pages written into a broadcast buffer, each counted as one message of its bytes.
        Broadcasts = "broadcasts",
        /// Fetches satisfied from a broadcast buffer.
        BroadcastHits = "broadcast_hits",
        /// Homes that moved to this node: see `migration_attempts`.
        Migrations = "migrations",
        /// Times this node asked for a unit's home.
        MigrationAttempts = "migration_attempts",
        /// Fetches that the timestamps showed to be unneeded.
        FetchesSkipped = "fetches_skipped",
        /// Flushes that the timestamps showed to be unneeded.
        FlushesSkipped = "flushes_skipped",
        /// Flushes that left the view its right to write, because it uses it again and again.
        RightsKept = "rights_kept",
        /// Of these, flushes that found nothing changed.
        KeptInVain = "kept_in_vain",
        /// Mappings dropped at an acquire.
        Invalidations = "invalidations",
        /// Locks acquired.
        LockAcquires = "lock_acquires",
        /// Releases put off because the mutex stayed in the node.
        DeferredReleases = "deferred_releases",
        /// Messages about mutexes, condition variables, barriers and flags; over `shm`, operations on another node's tables.
        SyncMessages = "sync_messages",
        /// Barriers passed.
        Barriers = "barriers",
        /// Flags set or waited for.
        Flags = "flags",
        /// Waits on a condition variable.
        ConditionWaits = "condition_waits",
        /// Messages of other nodes handled by processes of the program while they waited.
        HandledByWaiters = "handled_by_waiters",
        /// Messages of other nodes handled by the node's service process.
        HandledByService = "handled_by_service",
        /// Signals by which the service process heard of messages.
        SignalsTaken = "signals_taken",
        /// Times a waiting processor slept in the kernel.
        Sleeps = "sleeps",
        /// Times somebody who slept there was woken, by a system call.
        Wakes = "wakes",
        /// System calls that the engine made, the returns from its fault handler among them.
        SystemCalls = "system_calls",
        /// System calls for which a shared buffer was made valid first.
        BuffersPrepared = "buffers_prepared",
        /// Protection changes made coarser because the process ran out of mappings (mprotect only).
        CoarseInvalidations = "coarse_invalidations",
    }
}

names! {
    /// Where a processor's time goes. The buckets do not overlap; `Compute` is the rest.
    Bucket {
        /// The program's own code.
        Compute = "compute_ns",
        /// Read faults, with fetching the page.
        ReadFault = "read_fault_ns",
        /// Write faults, with twins.
        WriteFault = "write_fault_ns",
        /// Diffs, flushes and write notices at releases; invalidations at acquires.
        Flush = "flush_ns",
        /// Waiting for locks, flags and condition variables.
        LockWait = "lock_wait_ns",
        /// Waiting at barriers, and for threads to end.
        BarrierWait = "barrier_wait_ns",
        /// Serving other nodes' messages.
        Service = "service_ns",
    }
}

/// The counters and times of one processor; plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// By [`Counter`].
    pub counts: [u64; Counter::COUNT],
    /// Nanoseconds by [`Bucket`].
    pub nanos: [u64; Bucket::COUNT],
}

impl Counters {
    /// Nothing yet.
    pub const ZERO: Self = Self { counts: [0; Counter::COUNT], nanos: [0; Bucket::COUNT] };

    /// The count of one event.
    #[must_use]
    pub const fn count(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// The nanoseconds in one bucket.
    #[must_use]
    pub const fn nanos(&self, bucket: Bucket) -> u64 {
        self.nanos[bucket as usize]
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        for (mine, theirs) in self.nanos.iter_mut().zip(&other.nanos) {
            *mine += theirs;
        }
    }
}
