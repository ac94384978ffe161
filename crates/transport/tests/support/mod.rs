//! What the tests share: memory that processes share, connected meshes, and the processes themselves.

#![allow(dead_code)] // Each test file uses its own part of this.

use finespun_transport::{MESSAGE_BYTES_MAX, Mesh, Messages, Wait};
use finespun_types::NodeId;
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Memory that several processes can map. Tests are short: it stays mapped until the process ends.
pub struct Memory {
    pub file: OwnedFd,
    pub start: NonNull<u8>,
    pub len: usize,
}

impl Memory {
    pub fn new(len: usize) -> Self {
        let file = rustix::fs::memfd_create("finespun-test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, len as u64).unwrap();
        Self::map(file, len)
    }

    pub fn map(file: OwnedFd, len: usize) -> Self {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel chooses overlaps nothing.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, rights, MapFlags::SHARED, &file, 0) };
        Self { file, start: NonNull::new(start.unwrap().cast()).unwrap(), len }
    }

    /// The memory as words that any process may change.
    pub fn words(&self) -> &'static [AtomicU64] {
        // SAFETY: mapped until the process ends, page-aligned, and never seen as anything but atomics.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.len / 8) }
    }

    /// A mesh in this memory, which is used for nothing else.
    pub fn mesh(&self, me: NodeId, sockets: Vec<Option<OwnedFd>>) -> Mesh {
        // SAFETY: the memory is mapped until the process ends; the tests use it for this node's meshes only.
        unsafe { Mesh::attach(self.start.as_ptr(), self.len, me, sockets.len(), sockets) }.unwrap()
    }
}

pub const N0: NodeId = NodeId(0);
pub const N1: NodeId = NodeId(1);

/// A connected pair of sockets, with small kernel buffers if asked for.
pub fn sockets(small: bool) -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    if small {
        rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    }
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_nodelay(true).unwrap();
        if small {
            rustix::net::sockopt::set_socket_send_buffer_size(stream, 4096).unwrap();
        }
    }
    (near.into(), far.into())
}

/// Two nodes in this process.
pub fn pair(small: bool) -> (Mesh, Mesh) {
    let (near, far) = sockets(small);
    let zero = Memory::new(Mesh::bytes(2)).mesh(N0, vec![None, Some(near)]);
    let one = Memory::new(Mesh::bytes(2)).mesh(N1, vec![Some(far), None]);
    (zero, one)
}

/// Another descriptor of the same socket, as a process that inherits it has.
pub fn duplicate(socket: &OwnedFd) -> OwnedFd {
    socket.try_clone().unwrap()
}

const ROLE: &str = "FINESPUN_TEST_ROLE";

/// Starts this test program again, to play `role` in the test function `stage`, with these descriptors.
pub fn start(stage: &str, role: &str, descriptors: &[&OwnedFd]) -> Child {
    let numbers: Vec<RawFd> = descriptors.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    let listed: Vec<String> = numbers.iter().map(RawFd::to_string).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", stage, "--nocapture"]).env(ROLE, format!("{role}:{}", listed.join(",")));
    command.stdout(std::process::Stdio::null());
    // SAFETY: between fork and exec only fcntl is called, on descriptors that this process holds open.
    unsafe {
        command.pre_exec(move || {
            for &number in &numbers {
                rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?;
            }
            Ok(())
        });
    }
    command.spawn().unwrap()
}

/// In a process begun by [`start`]: its role and descriptors.
pub fn role() -> Option<(String, Vec<OwnedFd>)> {
    let role = std::env::var(ROLE).ok()?;
    let (name, listed) = role.split_once(':').unwrap();
    // SAFETY: `start` made these descriptors inheritable for this process, and nothing else here knows them.
    let owned = listed.split(',').map(|number| unsafe { OwnedFd::from_raw_fd(number.parse().unwrap()) });
    Some((name.to_owned(), owned.collect()))
}

/// A repeatable sequence of numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// The body of the message numbered `number`: any length up to the longest, mostly short ones.
pub fn body(number: u64) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let bound = [64, 64, 64, 512, 4200, 64 * 1024 - 15][random.below(64).min(5).min(random.below(6))];
    let bytes = random.below(bound);
    (0..bytes).map(|at| (number as usize * 31 + at) as u8).collect()
}

/// Waits and polls until `count` messages have been handled.
pub fn receive(node: &impl Messages, count: usize, mut handler: impl FnMut(&[u8])) {
    let mut handled = 0;
    while handled < count {
        handled += node.poll(&mut |_, message| handler(message));
        if handled < count {
            assert_eq!(node.wait(None, None), Wait::Ready);
        }
    }
}

/// Sends `one` messages of every length, each in three pieces, then does what `rest` says, and looks at what arrives; how many they are.
pub fn every_length<M: Messages>(zero: &M, one: &M, rest: impl FnOnce(&M) + Send) -> usize {
    let lengths: Vec<usize> =
        (0..300).chain((300..=MESSAGE_BYTES_MAX).step_by(997)).chain([MESSAGE_BYTES_MAX]).collect();
    let message = |length: usize| (0..length).map(|at| (at + length) as u8).collect::<Vec<u8>>();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for &length in &lengths {
                let whole = message(length);
                let (head, tail) = whole.split_at(length / 3);
                zero.send(N1, &[head, &[], tail]).unwrap();
                zero.flush();
            }
            rest(zero);
        });
        let mut next = lengths.iter();
        receive(one, lengths.len(), |got| assert_eq!(got, message(*next.next().unwrap())));
    });
    lengths.len()
}
