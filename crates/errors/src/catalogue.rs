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
        why: "the command line or an environment variable asks for something that is not there",
        fix: "see `finespun run --help`",
        exit: 2,
        more: "A flag, a count or a size is not one that `finespun` knows, or lies outside what a job can have: 1 to 64 \
               nodes (-n), 1 to 32 processes per node (-p), 1 to 64 threads per process (-t), at most 1024 processors in \
               all; a heap from 2M up; with --pin as many cores as processors, all of them cores that finespun itself may use. \
               Every flag of `finespun run` has a twin in the environment, for example FINESPUN_NODES for -n; a flag wins \
               over its twin. Flags of the program come after the program's name and are never looked at.",
    }
    /// The program cannot be started.
    Program = 2 {
        why: "the program could not be started",
        fix: "check the path, and that the file is executable",
        exit: 127,
        more: "The launcher looked for the program as a shell would: a name with a slash is a path, any other is looked \
               for along PATH (so a program in this directory is `./name`). It does so before it starts anything.",
    }
    /// A program that never called `fsp_init`.
    NeverStarted = 3 {
        why: "a program takes part in a job by calling fsp_init before it ends",
        fix: "call fsp_init first in main, and link with `pkg-config --libs finespun`",
        exit: 3,
        more: "The launcher started the program on every node, and a process of it ended with success without ever \
               calling fsp_init (or fsp_init_spmd). Every process would have done the same work. A program that ends \
               with an exit code other than 0 before fsp_init, for example because of a wrong flag of its own, ends the \
               job with that code and without this message.",
    }
    /// A call that needs a started runtime.
    NotStarted = 4 {
        why: "the runtime is not running: before fsp_init, or after fsp_finalize",
        fix: "move the call between fsp_init and fsp_finalize",
        exit: 4,
        more: "Shared memory and its locks exist from fsp_init to fsp_finalize. Behind fsp_finalize a load or a store is an error as a \
               call is: copy what is needed later to private memory. If a program leaves fsp_finalize to exit, what exit runs \
               behind it (handlers of atexit, destructors) must not use shared memory, and is not told when it does.",
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
        fix: "raise the limit that the message names, ask for less with `finespun run --heap`, or run `finespun doctor`",
        exit: 6,
        more: "The message says what was tried, the reason the kernel gave, and the limit of the process that is in the way, if \
               one is set. Frequent ones: address space (`ulimit -v`; a process maps several times what --heap says, of each node \
               that it reaches, and takes memory only for what is touched: `ulimit -v unlimited`, or a smaller --heap), \
               too many open files (`ulimit -n`), the size of files (`ulimit -f`; memory is made as files without a name), too many processes (`ulimit -u`, or the container's pids limit), no memory \
               (the container's memory limit), the addresses of the shared memory taken (`finespun doctor` tells).",
    }
    /// A file that was asked for cannot be read or written.
    File = 7 {
        why: "a file named on the command line could not be read or written",
        fix: "check the path and its permissions",
        exit: 7,
        more: "The message names the file and the reason the kernel gave. The file of --stats is tried before the job \
               starts, so that no run is lost by it.",
    }
    /// Output of --prefix that cannot be written.
    Output = 8 {
        why: "what the program has written could not be passed on, and part of it is lost",
        fix: "make room where the output goes, or send it elsewhere",
        exit: 8,
        more: "With --prefix the launcher writes the program's output. The message carries the reason the kernel gave: most often a full \
               device, a quota, or a file-size limit (`ulimit -f`). A reader that goes away is no error: the program then meets \
               SIGPIPE, as it would without --prefix.",
    }
    /// A synchronization object in private memory, in a job of several processes.
    PrivateObject = 11 {
        why: "threads of this program run in several processes, and an object in private memory is another one in each",
        fix: "build with `fspcc --pthread --share-stacks`, which shares them all, or put the object where fsp_malloc says",
        exit: 11,
        more: "A mutex, condition variable, barrier, flag, rwlock, semaphore, spin lock or once-control stands \
               in memory that only one process of the job sees: on a stack, or in globals or malloc memory of a program \
               that was built without --share-globals, --share-malloc or --share-stacks. It would protect that process only. In a job of \
               one process (-n 1 -p 1) those of the pthread layer work as ever.",
    }
    /// A pointer to private memory handed to a thread that may run elsewhere.
    PrivateArgument = 12 {
        why: "the new thread may run in another process, where private memory has other contents",
        fix: "point to a global or malloc memory (built by `fspcc --pthread`), share the stacks too (`--share-stacks`), or pass a number",
        exit: 12,
        more: "The argument of pthread_create points into memory that only the creating process sees; most often it is a \
               variable on the creator's stack. Build with `fspcc --pthread --share-stacks`, or allocate the argument with malloc, or \
               make the variable static. In a job of one process nothing needs to change.",
    }
    /// A pthread call that has no meaning across processes.
    NotAcrossNodes = 13 {
        why: "the call acts on a thread of the operating system, and that thread may be in another process or node",
        fix: "tell the thread by shared memory instead: a variable under a mutex, or a condition variable",
        exit: 13,
        more: "pthread_cancel, pthread_tryjoin_np, named semaphores, futex operations other than waits and wakes, and their kin are \
               not served across nodes; nor is pthread_kill with a handler that was set after the other thread was made. \
               docs/porting/pthread.md has the table of what is and what is not.",
    }
    /// A private global variable that one process writes and another reads.
    PrivateGlobal = 14 {
        why: "each process has its own copy of the program's global and static variables: the reader sees an older value",
        fix: "build with `fspcc --share-globals`, or keep the value in memory of fsp_malloc (TreadMarks: Tmk_malloc, or Tmk_distribute)",
        exit: 14,
        more: "Told by --check globals. From fsp_init on, what a process stores in its own .data and .bss the other processes do \
               not see. Each variable is named once, with the first process that changed it and a process that read it \
               afterwards and never stored there itself. A variable that every process sets for itself is no mistake and not \
               told; so is, since it looks the same, one to which every process adds and that one process reads at the end. \
               Variables of the program's shared libraries are not looked at. docs/porting.md says what the check costs.",
    }
    /// A pointer to private memory in shared memory.
    PrivatePointer = 15 {
        why: "at that address other processes have something else, or nothing: the pointer is good only where it was stored",
        fix: "let it point to shared memory: fsp_malloc, or what `fspcc --share-globals --share-malloc --share-stacks` shares",
        exit: 15,
        more: "Told by --check pointers. Whenever a process releases, the pages that it may have written are looked at, and words \
               that are addresses of its own private memory (stacks, the C library's malloc, variables that are not shared, \
               libraries) are told, each once. A program that is no PIE (fspcc --share-globals makes none) has its functions and \
               constants at one address everywhere, and pointers to them are good; in a PIE they are told: link with -no-pie, or pass \
               an index. A pointer that only its own process follows, such as a FILE in a shared structure, is told too, \
               since nobody knows who will.",
    }
    /// A stream of another process.
    StreamElsewhere = 17 {
        why: "what a stream has read ahead, or a stream without a descriptor, is in the memory of the process that has it",
        fix: "read all of a pipe in one thread, or by read(2); use a stream in memory, and one of popen, where it was opened",
        exit: 17,
        more: "In a program built by fspcc --pthread a FILE may be used by any thread: before each release its data goes to the descriptor, and \
               what was read ahead is given back by moving the offset. A pipe has no offset, and a stream in memory no descriptor: those stay in one \
               process. The message names the call's line. docs/porting/pthread.md has the rest.",
    }
    /// Unlock by a processor that does not hold the mutex.
    NotOwner = 20 {
        why: "only the processor that locked a mutex may unlock it",
        fix: "unlock in the processor that locked; to signal another processor use a flag or a condition variable",
        exit: 20,
        more: "A mutex is held by one processor. Unlocking it elsewhere, or twice, would let two processors into the \
               section it guards. fsp_cond_wait also needs the mutex held by its caller.",
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
        more: "The processor that holds the mutex asked for it again. For a static variable of a C++ function: its initialisation came to the \
               same function again, and would wait for its own end.",
    }
    /// A lock of the C library in shared memory.
    NodeLock = 23 {
        why: "the C library's locks are atomic instructions, which each node makes on its own copy of the memory",
        fix: "build with `fspcc --pthread`, or include finespun/pthread.h in the place of pthread.h; or use fsp_mutex_lock",
        exit: 23,
        more: "pthread_mutex_lock, sem_wait and their kin of the C library were called for an object in shared memory, in a job of \
               several nodes. Each node would lock its own copy, so that two nodes can be inside at once, or wait for ever for a \
               copy that was taken over locked. The calls of `fspcc --pthread` have the same names and lock for all nodes. So do \
               std::mutex and std::thread in programs built by `fspc++ --pthread`. On a single node (-n 1) the C library's \
               objects work where they are made for several processes (PTHREAD_PROCESS_SHARED). Locks made of atomic \
               instructions in the program itself are not seen.",
    }
    /// A processor waits by reading a plain variable.
    Spin = 24 {
        why: "a load sees what another node wrote only after an acquire: a lock, a flag, a barrier, an atomic call",
        fix: "wait by fsp_flag_wait or a condition variable, make the variable atomic (fspcc --pthread), or read by fsp_atomic_load",
        exit: 24,
        more: "A processor has read the same word in a loop for a long time, and nothing in the loop would bring a value that \
               another node writes. On one machine the loop ends when somebody stores; between nodes the store must be \
               released, and the loop must acquire: docs/consistency.md. LOAD does so in a program with PARMACS macros. The message names the word and the loop, with lines if the \
               program was built with -g, and what other nodes have there. Without `--check spins` it is a warning after ten \
               seconds, for another processor of the same node may end the loop yet; with it the job ends, after two seconds or \
               the number given (spins=SECONDS). An endless loop that reads nothing is what a compiler makes of a wait for a \
               variable that is neither volatile nor atomic. A loop that sleeps or calls in each turn is not noticed.",
    }
    /// Nobody else runs who could reach the barrier of all.
    NobodyElse = 25 {
        why: "after fsp_init only processor 0 runs main, and no other one runs anything that could reach the barrier",
        fix: "call it in a function that fsp_parallel runs, or start with fsp_init_spmd: main then runs in every process",
        exit: 25,
        more: "fsp_barrier_all waits for every processor of the job. Processor 0 called it while no other processor ran \
               anything, and who waits at a barrier starts no thread.",
    }
    /// Threads wait for each other in a circle.
    Deadlock = 26 {
        why: "each of these threads waits for what another one of them holds, so none of them ever goes on",
        fix: "lock mutexes that are held together in the same order everywhere",
        exit: 26,
        more: "Two threads, or more, stand in a circle: each waits for a mutex, or for the lock of a writer, that the next one holds, or \
               for the end of the next one. The message names each of them, what it waits for and who has that. Most often two \
               mutexes are locked in one order here and in the other order there. The job ends when the circle has been seen \
               twice, a second apart. Threads that stand in no circle are not needed for that: they may go on computing until then.",
    }
    /// A barrier that can never be filled.
    BarrierNever = 27 {
        why: "a barrier opens when as many threads have arrived as its count says, and so many cannot come any more",
        fix: "give the barrier the number of threads that call it, and call fsp_barrier_all on every processor",
        exit: 27,
        more: "A thread waits at fsp_barrier_wait, fsp_barrier_all or pthread_barrier_wait, and every other thread that could still arrive \
               waits too, or has ended; or the count is more than the job can have threads. The message says how many have \
               arrived, and what the others wait for. Usual causes: main calls it alone after fsp_init, where only processor 0 goes on; \
               one processor returns from a function of fsp_parallel before the barrier; a count that is one too many.",
    }
    /// A thread has ended with a mutex locked.
    HeldByEnded = 28 {
        why: "only the thread that locked a mutex may unlock it, and that thread has ended",
        fix: "unlock on every way out of the function",
        exit: 28,
        more: "A thread waits for a mutex, or for the lock of a writer, that was locked on a processor where no thread runs any more, and \
               all threads that could start another one there wait too. While one of them runs nothing is said, because a \
               later thread on that processor may unlock the mutex.",
    }
    /// Every thread waits.
    AllWait = 29 {
        why: "every thread of the job waits for another one to set a flag, signal or unlock, so none is left to do it",
        fix: "set the flag or signal before the last thread waits, and test the condition under its mutex before waiting for it",
        exit: 29,
        more: "A thread waits for a flag, a condition variable or a lock held by readers, and all the others wait too or have ended. The \
               message names them and what they wait for. Most often a signal came before the thread waited for it: a condition variable \
               does not remember signals. Nothing is said while any thread runs, sleeps, reads, or waits with a time limit, and \
               nothing in programs that handle a signal which another process could send.",
    }
    /// A process of the job died.
    Died = 40 {
        why: "a process of the job ended by a signal",
        fix: "look at that line and at the program's own messages above; `finespun run -n 1` under a debugger is the next step",
        exit: 40,
        more: "What only that process's node had of the shared memory is lost, so the whole job ends. The exit code of \
               the job is 128 plus the signal, as in a shell: 139 for SIGSEGV (11), 134 for SIGABRT (6), 137 for SIGKILL \
               (9). docs/debugging.md has gdb and core dumps. SIGKILL without anybody having sent it is most often the kernel's out-of-memory killer: see `dmesg`, \
               and give the job less heap or the container more memory.",
    }
    /// A processor left while others wait for it.
    Left = 41 {
        why: "other processors wait for one that has ended",
        fix: "let every processor reach the barrier, and return from main only when all are done",
        exit: 41,
        more: "A process ended without fsp_finalize while the job still ran: by _exit, quick_exit or exec, or by exit \
               while others stood at a barrier or waited for its locks. The exit code of the job is the process's own, or \
               41 if that was 0.",
    }
    /// The program ended the job itself.
    Aborted = 42 {
        why: "the program ended the job by fsp_abort",
        fix: "see the message: it is the program's own",
        exit: 42,
        more: "fsp_abort ends every process of the job at once, with the exit code that the program gave.",
    }
    /// A node cannot be reached.
    Unreachable = 43 {
        why: "a node of the job does not answer, and nothing shows that it has ended",
        fix: "look at that node: is it stopped, or is the network to it cut?",
        exit: 43,
        more: "The connection to the node closed or its service process stopped answering. A node that is stopped (a \
               debugger, SIGSTOP) looks the same from outside.",
    }
    /// A process followed a pointer to another's memory.
    OtherMemory = 44 {
        why: "a thread followed a pointer to memory that only another process of the job has",
        fix: "find the word that holds it by `finespun run --check pointers`, and share what it points to: `finespun explain E044`",
        exit: 44,
        more: "Shared memory has one address in every process. A stack, memory of the C library's own malloc, a mapping \
               and a library's variables have not: a pointer to them is good in the process that has them. The message says \
               which process has something at the address, and what. Fields of a shared structure are where such pointers stand most often, and \
               arguments of threads. fsp_malloc gives memory that is shared, `fspcc --share-malloc` makes malloc give such, and `fspcc --pthread \
               --share-stacks` shares stacks, too. The exit code of the job is 128 plus the signal.",
    }
    /// The shared heap is full.
    HeapExhausted = 50 {
        why: "the shared heap has no free run of that size",
        fix: "free memory, or give more with `finespun run --heap 8G`",
        exit: 50,
        more: "The heap grows as it is used, up to the limit of --heap. The limit is address space, not memory in use; its \
               default is the memory available when the job starts, at most 64 GiB.",
    }
    /// Free of a pointer that is not a live allocation.
    BadFree = 51 {
        why: "only a pointer that fsp_malloc and its kin returned, and that is not yet freed, can be freed",
        fix: "free each allocation once, by the pointer that was returned",
        exit: 51,
        more: "The pointer lies outside the shared heap, inside an allocation, or in memory already freed. Memory of \
               malloc is freed by free, memory of fsp_malloc by fsp_free.",
    }
    /// Too many synchronization objects in use at once.
    TooManyObjects = 52 {
        why: "a node keeps the state of the mutexes, barriers and flags in use in tables of a fixed size",
        fix: "unlock mutexes and reset flags that are no longer needed, or run on more nodes",
        exit: 52,
        more: "Only objects in use count: a held mutex, a barrier with somebody in it, a flag above 0. Each node has room for about four million of them.",
    }
    /// Lazy release consistency has no room for more intervals or diffs.
    LazyFull = 53 {
        why: "tmk forgets old changes only at a barrier of all processors, and there was none for too long",
        fix: "call fsp_barrier_all now and then, or run under another protocol",
        exit: 53,
        more: "Under --protocol tmk a node keeps what it has written since the last collection, for others to ask for: a diff \
               for each page and interval that somebody asked about, and a line for each interval. It asks for a collection \
               when that takes 64 MiB, or half of the room for intervals (half a million of them a node), and the collection takes place \
               at the next fsp_barrier_all. A program that synchronizes for long with locks and flags alone never gets there. \
               The other protocols keep nothing of the kind.",
    }
    /// A stack in shared memory is full.
    StackOverflow = 54 {
        why: "the frames of the functions that the thread has called do not fit into its stack",
        fix: "ask for more with pthread_attr_setstacksize, or call less deeply",
        exit: 54,
        more: "In a program built by `fspcc --pthread --share-stacks` a thread's stack is a piece of the shared heap, of the size \
               that its attributes say; without, of the usual size (`ulimit -s`, most often 8 MiB) or of a 256th part of the \
               heap, whichever is less: see --heap. Its lowest page is never used, and was touched.",
    }
    /// The program changed the mapping of shared memory.
    Mapping = 55 {
        why: "loads and stores are noticed by the rights of shared pages, so only the runtime may change their mapping",
        fix: "use mprotect, munmap and mmap with MAP_FIXED on private memory only; free shared memory with fsp_free",
        exit: 55,
        more: "The program called mprotect, munmap, mremap, or mmap with MAP_FIXED for addresses of the shared space. Another node's \
               stores would then be lost there, or a load would fault for ever. The message names the call and the address. A call made past the \
               C library (syscall) is noticed under userfaultfd when a thread faults at one address again and again.",
    }
    /// A mapping that shared memory cannot stand for.
    UnservedMapping = 56 {
        why: "what mmap gives a program of threads is memory of the shared heap, and that cannot do what this call asks for",
        fix: "map anonymous memory or a regular file, once if it is written, at an address that mmap chooses; or read and write",
        exit: 56,
        more: "In a program built by fspcc --pthread, mmap gives shared memory, into which a file's contents are read. Not served are devices, a \
               second shared mapping of a file that is mapped to be written, MAP_FIXED over other memory than that of mmap, growing a mapping of a file, \
               and taking rights away where the program has a handler for SIGSEGV. docs/system-calls.md has the rest.",
    }
    /// Nodes that run different builds.
    Builds = 60 {
        why: "all processes of a job must run the same build of the program and of Finespun, since code and data are shared",
        fix: "start the same file on every node, and rebuild it against the Finespun that `finespun --version` shows",
        exit: 60,
        more: "Each process compares the build of its program with that of node 0 when it joins. A script that picks \
               another program on each node leads here too.",
    }
    /// Somebody without the job's token tried to join.
    NotAdmitted = 62 {
        why: "only processes that prove the job's random token are let in",
        fix: "start the program through `finespun run`; if you did, another process on this machine tried to join",
        exit: 62,
        more: "The launcher makes a token of 32 random bytes for each job and hands it down by an inherited descriptor. \
               Connections are accepted on the loopback interface only. A stranger that connects and proves nothing is dropped, \
               and ends no job; this error says that a node was answered, and then refused.",
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
    /// The program closed the runtime's descriptors.
    Closed = 82 {
        why: "the runtime needs its own descriptors, and the program has closed one of them",
        fix: "close only what the program has opened, or close by the C library's functions",
        exit: 82,
        more: "Finespun's descriptors in a process of the program have large numbers, from 512 on where `ulimit -n` allows it. \
               close, closefrom, close_range, dup2 and dup3 of the C library leave them alone, as if they were not open: a program \
               may close every number from 3 on. This one closed them in another way, most often by syscall().",
    }
    /// A bug of ours.
    Bug = 99 {
        why: "something happened that our own rules call impossible",
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
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(UnknownCode); // parse::<u16> would take a sign
        }
        let number: u16 = digits.parse().map_err(|_| UnknownCode)?;
        Self::ALL.iter().copied().find(|code| *code as u16 == number).ok_or(UnknownCode)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, UnknownCode};

    #[test]
    fn numbers_are_in_order_and_given_once() {
        assert!(Code::ALL.windows(2).all(|pair| (pair[0] as u16) < (pair[1] as u16)));
    }

    #[test]
    fn a_code_is_found_by_the_number_it_is_shown_with() {
        for &code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(code));
        }
        assert_eq!("e20".parse(), Ok(Code::NotOwner));
        assert_eq!("020".parse(), Ok(Code::NotOwner));
        for unknown in ["", "E", "E000", "E1000", "E-1", "W100", "E+20", "EE20"] {
            assert_eq!(unknown.parse::<Code>(), Err(UnknownCode), "{unknown}");
        }
    }

    #[test]
    fn texts_are_one_sentence_without_capital_or_stop_and_explanations_are_prose() {
        for &code in Code::ALL {
            for text in [code.why(), code.fix()] {
                assert!(text.starts_with(|c: char| !c.is_uppercase()) && !text.ends_with('.'), "{code}: {text}");
                assert!(text.len() < 125, "{code}: does not fit a line: {text}");
            }
            assert!(code.more().ends_with('.') && code.more().starts_with(char::is_alphabetic), "{code}");
            assert!(!code.more().contains("  "), "{code}: a line break left its indentation");
        }
    }

    #[test]
    fn every_exit_code_is_a_failure_that_no_signal_gives() {
        assert!(Code::ALL.iter().all(|code| (1..128).contains(&code.exit_code())));
    }
}
