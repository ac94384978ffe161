//! The functions behind ours: the next ones in the order in which the dynamic linker looks, most often the C library's.
//!
//! They are looked up when the library is loaded, and one by one before that: another library's constructor may call `read`
//! first. `dlsym` finds a name without calling any of them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    DIR, FILE, addrinfo, clock_t, clockid_t, epoll_event, fd_set, id_t, idtype_t, iovec, itimerval, mmsghdr, mode_t,
    msghdr, nfds_t, off_t, pid_t, pollfd, posix_spawn_file_actions_t, posix_spawnattr_t, pthread_attr_t,
    pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, pthread_t, rlimit,
    rusage, sem_t, siginfo_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t, stack_t, stat as stat_t,
    statfs as statfs_t, sysinfo as sysinfo_t, timespec, timeval, tms, utsname,
};

/// A function's address; null until it is looked up.
struct Address(AtomicPtr<c_void>);

impl Address {
    const fn unknown() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    #[inline]
    fn get(&self, name: &'static CStr) -> *mut c_void {
        let address = self.0.load(Ordering::Relaxed);
        if address.is_null() { self.find(name) } else { address }
    }

    #[cold]
    fn find(&self, name: &'static CStr) -> *mut c_void {
        // SAFETY: a C string; RTLD_NEXT asks for the definition after the object that this code is in.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        // Relaxed: whoever reads it needs the number only, the code has been there since the library was loaded.
        self.0.store(address, Ordering::Relaxed);
        address
    }
}

/// Ends the process: it called what its C library does not have.
#[cold]
fn missing(name: &'static CStr) -> ! {
    let text = b"finespun: the C library has no function ";
    for piece in [text.as_slice(), name.to_bytes(), b"\n"] {
        // SAFETY: `piece` is readable for its length; a system call, since `write` is one of ours.
        unsafe { libc::syscall(libc::SYS_write, 2, piece.as_ptr(), piece.len()) };
    }
    // SAFETY: takes no argument and does not return.
    unsafe { libc::abort() }
}

macro_rules! real_functions {
    ($($address:ident = fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            static $address: Address = Address::unknown();

            /// The C library's function of this name.
            ///
            /// # Safety
            /// As the C library's.
            #[inline]
            pub unsafe fn $name($($argument: $type),*) -> $result {
                const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                let address = $address.get(NAME);
                if address.is_null() {
                    missing(NAME);
                }
                // "C-unwind": a thread that is cancelled in the call is unwound through here.
                // SAFETY: the C library's function of this name has this type.
                let function: unsafe extern "C-unwind" fn($($type),*) -> $result = unsafe { std::mem::transmute(address) };
                // SAFETY: by contract.
                unsafe { function($($argument),*) }
            }
        )*

        /// Looks all of them up.
        extern "C" fn find_all() {
            $(if let Ok(name) = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                $address.get(name);
            })*
        }
    };
}

/// Run when the library is loaded, so that no call of a signal handler has to look a name up.
#[used]
#[unsafe(link_section = ".init_array")]
static FIND_ALL: extern "C" fn() = find_all;

/// What a new thread runs.
pub type ThreadStart = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// What a new C11 thread runs.
pub type C11Start = extern "C" fn(*mut c_void) -> c_int;
/// A signal handler, or SIG_DFL or SIG_IGN, as a number.
pub type PlainHandler = usize;

real_functions! {
    READ = fn read(fd: c_int, buffer: *mut c_void, bytes: size_t) -> ssize_t;
    WRITE = fn write(fd: c_int, buffer: *const c_void, bytes: size_t) -> ssize_t;
    PREAD = fn pread(fd: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t;
    PWRITE = fn pwrite(fd: c_int, buffer: *const c_void, bytes: size_t, offset: off_t) -> ssize_t;
    READV = fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    WRITEV = fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    PREADV = fn preadv(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t) -> ssize_t;
    PWRITEV = fn pwritev(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t) -> ssize_t;
    PREADV2 = fn preadv2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    PWRITEV2 = fn pwritev2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;

    RECV = fn recv(fd: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t;
    RECVFROM = fn recvfrom(fd: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr, len: *mut socklen_t) -> ssize_t;
    RECVMSG = fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    RECVMMSG = fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    SEND = fn send(fd: c_int, buffer: *const c_void, bytes: size_t, flags: c_int) -> ssize_t;
    SENDTO = fn sendto(fd: c_int, buffer: *const c_void, bytes: size_t, flags: c_int, to: *const sockaddr, len: socklen_t) -> ssize_t;
    SENDMSG = fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    SENDMMSG = fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;

    ACCEPT = fn accept(fd: c_int, from: *mut sockaddr, len: *mut socklen_t) -> c_int;
    ACCEPT4 = fn accept4(fd: c_int, from: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    GETSOCKNAME = fn getsockname(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int;
    GETPEERNAME = fn getpeername(fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int;
    GETSOCKOPT = fn getsockopt(fd: c_int, level: c_int, name: c_int, to: *mut c_void, len: *mut socklen_t) -> c_int;
    CONNECT = fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int;
    BIND = fn bind(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int;
    SETSOCKOPT = fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;

    FREAD = fn fread(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    FREAD_UNLOCKED = fn fread_unlocked(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    FWRITE = fn fwrite(buffer: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    FWRITE_UNLOCKED = fn fwrite_unlocked(buffer: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    FPUTS = fn fputs(text: *const c_char, stream: *mut FILE) -> c_int;
    FPUTS_UNLOCKED = fn fputs_unlocked(text: *const c_char, stream: *mut FILE) -> c_int;
    PUTS = fn puts(text: *const c_char) -> c_int;
    SETVBUF = fn setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, bytes: size_t) -> c_int;

    CLOSE = fn close(fd: c_int) -> c_int;
    DUP2 = fn dup2(old: c_int, new: c_int) -> c_int;
    DUP3 = fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int;

    PTHREAD_CREATE = fn pthread_create(thread: *mut pthread_t, attributes: *const pthread_attr_t, start: ThreadStart, argument: *mut c_void) -> c_int;
    PTHREAD_EXIT = fn pthread_exit(result: *mut c_void) -> ();
    THRD_CREATE = fn thrd_create(thread: *mut pthread_t, start: C11Start, argument: *mut c_void) -> c_int;

    MPROTECT = fn mprotect(start: *mut c_void, bytes: size_t, rights: c_int) -> c_int;
    MUNMAP = fn munmap(start: *mut c_void, bytes: size_t) -> c_int;
    MMAP = fn mmap(start: *mut c_void, bytes: size_t, rights: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void;
    MREMAP = fn mremap(start: *mut c_void, bytes: size_t, new_bytes: size_t, flags: c_int, to: *mut c_void) -> *mut c_void;

    SYSTEM = fn system(command: *const c_char) -> c_int;
    POPEN = fn popen(command: *const c_char, way: *const c_char) -> *mut FILE;
    POSIX_SPAWN = fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, words: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    POSIX_SPAWNP = fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, words: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    PCLOSE = fn pclose(stream: *mut FILE) -> c_int;
    REALPATH = fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char;
    GETADDRINFO = fn getaddrinfo(node: *const c_char, service: *const c_char, hints: *const addrinfo, to: *mut *mut addrinfo) -> c_int;
    FORK = fn fork() -> pid_t;
    EXIT = fn exit(code: c_int) -> ();
    SIGALTSTACK = fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int;

    PTHREAD_MUTEX_LOCK = fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
    PTHREAD_MUTEX_TRYLOCK = fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
    PTHREAD_MUTEX_TIMEDLOCK = fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    PTHREAD_MUTEX_CLOCKLOCK = fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int;
    PTHREAD_COND_WAIT = fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    PTHREAD_COND_TIMEDWAIT = fn pthread_cond_timedwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    PTHREAD_COND_SIGNAL = fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int;
    PTHREAD_COND_BROADCAST = fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int;
    PTHREAD_RWLOCK_RDLOCK = fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
    PTHREAD_RWLOCK_WRLOCK = fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
    PTHREAD_RWLOCK_TRYRDLOCK = fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int;
    PTHREAD_RWLOCK_TRYWRLOCK = fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int;
    PTHREAD_RWLOCK_TIMEDRDLOCK = fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    PTHREAD_RWLOCK_TIMEDWRLOCK = fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    PTHREAD_SPIN_LOCK = fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int;
    PTHREAD_SPIN_TRYLOCK = fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int;
    PTHREAD_BARRIER_WAIT = fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int;
    SEM_WAIT = fn sem_wait(semaphore: *mut sem_t) -> c_int;
    SEM_TRYWAIT = fn sem_trywait(semaphore: *mut sem_t) -> c_int;
    SEM_TIMEDWAIT = fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
    SEM_POST = fn sem_post(semaphore: *mut sem_t) -> c_int;
    MTX_LOCK = fn mtx_lock(mutex: *mut c_void) -> c_int;
    MTX_TRYLOCK = fn mtx_trylock(mutex: *mut c_void) -> c_int;
    MTX_TIMEDLOCK = fn mtx_timedlock(mutex: *mut c_void, until: *const timespec) -> c_int;
    CND_WAIT = fn cnd_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int;
    CND_TIMEDWAIT = fn cnd_timedwait(condition: *mut c_void, mutex: *mut c_void, until: *const timespec) -> c_int;
    CND_SIGNAL = fn cnd_signal(condition: *mut c_void) -> c_int;
    CND_BROADCAST = fn cnd_broadcast(condition: *mut c_void) -> c_int;

    SIGPROCMASK = fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int;
    PTHREAD_SIGMASK = fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int;
    SIGSUSPEND = fn sigsuspend(mask: *const sigset_t) -> c_int;
    PPOLL = fn ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    PSELECT = fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    EPOLL_PWAIT = fn epoll_pwait(fd: c_int, events: *mut epoll_event, count: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;

    OPEN = fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    OPEN64 = fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    OPENAT = fn openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    OPENAT64 = fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    FOPEN = fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE;
    FOPEN64 = fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE;
    OPENDIR = fn opendir(path: *const c_char) -> *mut DIR;
    ACCESS = fn access(path: *const c_char, mode: c_int) -> c_int;
    UNLINK = fn unlink(path: *const c_char) -> c_int;
    MKDIR = fn mkdir(path: *const c_char, mode: mode_t) -> c_int;
    RMDIR = fn rmdir(path: *const c_char) -> c_int;
    CHDIR = fn chdir(path: *const c_char) -> c_int;
    TRUNCATE = fn truncate(path: *const c_char, bytes: off_t) -> c_int;
    RENAME = fn rename(from: *const c_char, to: *const c_char) -> c_int;
    STAT = fn stat(path: *const c_char, to: *mut stat_t) -> c_int;
    STAT64 = fn stat64(path: *const c_char, to: *mut stat_t) -> c_int;
    LSTAT = fn lstat(path: *const c_char, to: *mut stat_t) -> c_int;
    LSTAT64 = fn lstat64(path: *const c_char, to: *mut stat_t) -> c_int;
    FSTAT = fn fstat(fd: c_int, to: *mut stat_t) -> c_int;
    FSTAT64 = fn fstat64(fd: c_int, to: *mut stat_t) -> c_int;
    FSTATAT = fn fstatat(at: c_int, path: *const c_char, to: *mut stat_t, flags: c_int) -> c_int;
    FSTATAT64 = fn fstatat64(at: c_int, path: *const c_char, to: *mut stat_t, flags: c_int) -> c_int;
    PIPE = fn pipe(pair: *mut [c_int; 2]) -> c_int;
    PIPE2 = fn pipe2(pair: *mut [c_int; 2], flags: c_int) -> c_int;
    SOCKETPAIR = fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut [c_int; 2]) -> c_int;
    WAITPID = fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t;
    WAIT = fn wait(status: *mut c_int) -> pid_t;
    CLOCK_GETTIME = fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
    GETRUSAGE = fn getrusage(who: c_int, usage: *mut rusage) -> c_int;
    POLL = fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    EPOLL_WAIT = fn epoll_wait(fd: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int;
    GETRANDOM = fn getrandom(buffer: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t;
    READLINK = fn readlink(path: *const c_char, buffer: *mut c_char, bytes: size_t) -> ssize_t;
    UNAME = fn uname(to: *mut utsname) -> c_int;
    SYSINFO = fn sysinfo(to: *mut sysinfo_t) -> c_int;
    TIMES = fn times(to: *mut tms) -> clock_t;
    GETRLIMIT = fn getrlimit(resource: c_uint, to: *mut rlimit) -> c_int;
    STATFS = fn statfs(path: *const c_char, to: *mut statfs_t) -> c_int;
    FSTATFS = fn fstatfs(fd: c_int, to: *mut statfs_t) -> c_int;
    GETCWD = fn getcwd(buffer: *mut c_char, bytes: size_t) -> *mut c_char;
    GETITIMER = fn getitimer(which: c_int, to: *mut itimerval) -> c_int;
    SETITIMER = fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int;
    EPOLL_CTL = fn epoll_ctl(epoll: c_int, way: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    SELECT = fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, left: *mut timeval) -> c_int;
    WAIT4 = fn wait4(pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t;
    WAITID = fn waitid(kind: idtype_t, id: id_t, to: *mut siginfo_t, options: c_int) -> c_int;
    SIGWAIT = fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int;
    SIGWAITINFO = fn sigwaitinfo(set: *const sigset_t, to: *mut siginfo_t) -> c_int;
    SIGTIMEDWAIT = fn sigtimedwait(set: *const sigset_t, to: *mut siginfo_t, limit: *const timespec) -> c_int;
    CLOCK_NANOSLEEP = fn clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int;
    SLEEP = fn sleep(seconds: c_uint) -> c_uint;
    USLEEP = fn usleep(micros: c_uint) -> c_int;
    NANOSLEEP = fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int;
}
