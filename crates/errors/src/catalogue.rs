//! The catalogue. Numbers are for ever: a number is never given a second meaning.

use std::fmt;
use std::str::FromStr;

macro_rules! catalogue {
    ($($(#[$doc:meta])* $name:ident = $number:literal { why: $why:literal, fix: $fix:literal, exit: $exit:literal, more: $more:literal, })*) => {
        /// The number of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Code { $($(#[$doc])* $name = $number,)* }

        impl Code {
            /// All numbers, in order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Why this is an error, in one sentence.
            #[must_use]
            pub const fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)* }
            }
            /// What to do about it, in one sentence.
            #[must_use]
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)* }
            }
            /// The exit code of a job that ends by it.
            #[must_use]
            pub const fn exit_code(self) -> i32 {
                match self { $(Self::$name => $exit,)* }
            }
            /// The longer explanation of `finespun explain`.
            #[must_use]
            pub const fn more(self) -> &'static str {
                match self { $(Self::$name => $more,)* }
            }
        }
    };
}

catalogue! {
    /// A wrong flag or value on the command line.
    Usage = 1 {
        why: "the command line could not be understood",
        fix: "see `finespun run --help`",
        exit: 2,
        more: "A flag, a count or a size is not one that `finespun` knows.",
    }
    /// The program cannot be started.
    Program = 2 {
        why: "the program could not be started",
        fix: "check the path, and that the file is executable",
        exit: 127,
        more: "The launcher looked for the program as a shell would: a path with a slash as it is, else along PATH.",
    }
    /// A program that never called `fsp_init`.
    NeverStarted = 3 {
        why: "a program takes part in a job by calling fsp_init before it ends",
        fix: "call fsp_init first in main, and link with `pkg-config --libs finespun`",
        exit: 3,
        more: "The launcher started the program on every node, and a process of it ended without ever calling fsp_init.",
    }
    /// A call that needs a started runtime.
    NotStarted = 4 {
        why: "the runtime is not running: before fsp_init, or after fsp_finalize",
        fix: "move the call between fsp_init and fsp_finalize",
        exit: 4,
        more: "Shared memory and its locks exist from fsp_init to fsp_finalize.",
    }
    /// A wrong argument to a library call.
    Argument = 5 {
        why: "an argument of a library call is out of its range",
        fix: "see the function's description in the header",
        exit: 5,
        more: "The message names the function, the argument, its value and what was expected.",
    }
    /// Something the machine does not offer.
    Machine = 6 {
        why: "the machine refused something that Finespun needs",
        fix: "run `finespun doctor`: it says what is missing and how to get it",
        exit: 6,
        more: "The message carries the system call and the reason the kernel gave.",
    }
    /// Nodes that run different builds.
    Builds = 60 {
        why: "all nodes of a job must run the same build of the program, since code and data addresses are shared",
        fix: "start the same file on every node",
        exit: 60,
        more: "Each process compares the build of its program with that of node 0 when it joins.",
    }
    /// Unlock by a processor that does not hold the mutex.
    NotOwner = 20 {
        why: "only the processor that locked a mutex may unlock it",
        fix: "unlock in the processor that locked; to signal another processor use a flag or a condition variable",
        exit: 20,
        more: "A mutex is held by one processor. Unlocking it elsewhere, or twice, would let two processors into the section it guards.",
    }
    /// Processors disagree about a barrier's count.
    BarrierCount = 21 {
        why: "all processors must give a barrier the same count",
        fix: "pass the same count everywhere; fsp_barrier_all needs none",
        exit: 21,
        more: "The first arrival of a round sets the count; a later arrival gave another.",
    }
    /// A processor locked a mutex that it already holds.
    Relock = 22 {
        why: "a mutex is not recursive: the processor would wait for itself for ever",
        fix: "lock once, or split the function so that the inner part expects the mutex to be held",
        exit: 22,
        more: "The processor that holds the mutex asked for it again.",
    }
    /// A process of the job died.
    Died = 40 {
        why: "a process of the job ended by a signal",
        fix: "look at the program's own message above; run it under a debugger with `finespun run ... gdb`",
        exit: 40,
        more: "What only that process's node had of the shared memory is lost, so the whole job ends. The exit code is 128 plus the signal.",
    }
    /// A processor left while others wait for it.
    Left = 41 {
        why: "other processors wait for one that has ended",
        fix: "let every processor reach the barrier, and return from main only when all are done",
        exit: 41,
        more: "A process ended without fsp_finalize while the job still ran.",
    }
    /// The shared heap is full.
    HeapExhausted = 50 {
        why: "the shared heap has no free run of that size",
        fix: "free memory, or give more with `finespun run --heap 8G`",
        exit: 50,
        more: "The heap grows as it is used, up to the limit of --heap.",
    }
    /// Free of a pointer that is not a live allocation.
    BadFree = 51 {
        why: "only a pointer that fsp_malloc and its kin returned, and that is not yet freed, can be freed",
        fix: "free each allocation once, by the pointer that was returned",
        exit: 51,
        more: "The pointer lies outside the shared heap, inside an allocation, or in memory already freed.",
    }
    /// The library was called in a child made by fork.
    Forked = 80 {
        why: "a child made by fork is no part of the job and has no shared memory",
        fix: "use fsp_thread_create, or exec another program in the child",
        exit: 80,
        more: "The shared space is not inherited over fork: the child would read stale memory without any warning.",
    }
    /// fsp_init twice.
    StartedTwice = 81 {
        why: "fsp_init may be called once",
        fix: "remove the second call",
        exit: 81,
        more: "The runtime is already running in this process, or has already ended.",
    }
    /// A bug of ours.
    Bug = 99 {
        why: "Finespun did something its own protocol tables call impossible",
        fix: "please report it, with the lines above",
        exit: 99,
        more: "Nothing a program does should lead here.",
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:03}", *self as u16)
    }
}

/// The text is no number of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode;

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let digits = text.strip_prefix(['E', 'e']).unwrap_or(text);
        let number: u16 = digits.parse().map_err(|_| UnknownCode)?;
        Self::ALL.iter().copied().find(|code| *code as u16 == number).ok_or(UnknownCode)
    }
}
