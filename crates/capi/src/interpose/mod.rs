//! Functions of the C library that are defined here again, in front of it, so that shared memory is ordinary memory for
//! them too.
//!
//! **Buffers.** The kernel does not serve faults of the shared space: `read` into a page that is not valid fails with
//! `EFAULT`, and a datagram is lost with it. A buffer that lies in the shared space is therefore never given to the
//! kernel. It works on a private buffer ([`bounce`]), and the bytes are copied with loads and stores, which fault and
//! are served as any of the program's: right whatever other threads acquire or release meanwhile. Large copies make
//! their pages valid first, which saves the signals. A call whose buffers are all private
//! costs 2 ns more (`read(-1)`: 81.7 to 83.8 ns, docs/system-calls.md).
//!
//! | what | functions | where |
//! |---|---|---|
//! | files, pipes | read, write, pread, pwrite, readv, writev, preadv, pwritev, preadv2, pwritev2 | [`files`] |
//! | sockets | recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg, sendmmsg | [`sockets`] |
//! | streams | fread, fwrite, fputs, puts, setvbuf and kin | [`stdio`] |
//! | small objects | stat and kin, pipe, socketpair, poll, epoll_wait, wait, waitpid, getrandom, readlink, getrusage, ... | [`records`] |
//! | | select, wait4, sigwait, sleep, uname, getcwd, setitimer, ... | [`results`] |
//! | names of sockets | accept, connect, bind, getsockname, getsockopt, ... | [`names`] |
//! | paths | open, fopen, opendir, stat and kin, access, unlink, rename, mkdir, ... | [`paths`] |
//! | signals | sigaction, signal, pthread_sigmask, sigsuspend and kin | [`signals`] |
//! | threads | pthread_create, thrd_create | [`threads`] |
//! | locks, as a check only | pthread_mutex_lock, pthread_cond_wait, sem_wait, mtx_lock and kin | [`locks`] |
//! | descriptors of ours, left open | close, closefrom, close_range, dup2, dup3 | [`descriptors`] |
//! | mappings, as a check only | mprotect, munmap, mmap, mremap | [`mappings`] |
//! | processes | fork, system, popen, posix_spawn, getaddrinfo, exit: on a shared stack | [`processes`] |
//!
//! with their 64-bit names and those that `_FORTIFY_SOURCE` uses. Not here, because they load and store in user mode:
//! everything of stdio that goes through the stream's own buffer (fgets, getc, scanf, printf ...), `memcpy`, `clock_gettime`.
//! Not served: `ioctl`, `io_uring`, asynchronous I/O, and any other call that is in no table: touch the buffer, or use a private one.
//!
//! **Large transfers.** A regular file is transferred in pieces of [`bounce::CHUNK`], each a call of its own: another process
//! can see, or put, something between them. Messages are transferred whole.
//!
//! **Where it reaches.** What the program and its libraries call by these names, if the program is linked with libfinespun:
//! not a library loaded by `dlopen` with a C library of its own, not the C library's own calls, not a program linked with
//! `-static`. The functions work before `fsp_init`, after `fsp_finalize`, in children of fork and in signal handlers as the
//! originals do. Nothing here takes a lock or allocates with `malloc`.

mod bounce;
mod descriptors;
mod errno;
mod files;
mod locks;
mod mappings;
mod names;
mod paths;
mod pieces;
mod processes;
pub mod real;
mod records;
mod results;
mod signals;
mod sockets;
mod stdio;
mod threads;
mod transfer;

pub use signals::{are_ours, let_faults_in};

use std::ffi::c_void;

use finespun_runtime::buffers;

/// Does the kernel have to be kept from this buffer?
#[inline]
fn is_shared<T: ?Sized>(buffer: *const T, bytes: usize) -> bool {
    buffers::is_shared(buffer.cast::<c_void>().addr(), bytes)
}

/// Does the kernel have to be kept from this object?
#[inline]
fn is_shared_object<T>(object: *const T) -> bool {
    is_shared(object, size_of::<T>())
}
