//! Nodes of several real processes: the same memory, the same sockets, anybody receives.
//!
//! Each test starts this program again for the processes of its nodes; they play their part in `stage`.

mod support;

use finespun_transport::{Delay, Mesh, Messages, Wait};
use finespun_types::NodeId;
use std::io::{PipeWriter, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use support::{Memory, N0, N1, body};

const SENDERS: usize = 2;
const EACH: u64 = 4000;
const NOTE_BYTES: usize = 4096;

/// What the processes of a node note for the test: for each sender of the other node, the number of the message
/// expected next; then how many answers have come.
struct Notes(&'static [AtomicU64]);

impl Notes {
    fn new(memory: &Memory) -> Self {
        Self(memory.words())
    }

    /// Checks one message of the other node: sender, number, body.
    fn check(&self, message: &[u8]) {
        let sender = usize::from(message[0]);
        let number = u64::from_le_bytes(message[1..9].try_into().unwrap());
        let expected = &self.0[sender];
        assert_eq!(number, expected.load(SeqCst), "a message of sender {sender} is lost, doubled or out of order");
        assert_eq!(message[9..], body(number));
        expected.store(number + 1, SeqCst);
    }

    fn is_complete(&self) -> bool {
        (0..SENDERS).all(|sender| self.0[sender].load(SeqCst) == EACH)
    }
}

/// A node: its memory, and one socket of which its processes get copies.
struct Node {
    me: NodeId,
    memory: Memory,
    notes: Memory,
    socket: OwnedFd,
}

impl Node {
    fn pair(small: bool) -> (Self, Self) {
        let (near, far) = support::sockets(small);
        let node =
            |me, socket| Self { me, memory: Memory::new(Mesh::bytes(2)), notes: Memory::new(NOTE_BYTES), socket };
        (node(N0, near), node(N1, far))
    }

    fn start(&self, part: &str, index: usize, end: &OwnedFd) -> Child {
        let role = format!("{part} {} {index}", self.me.0);
        support::start("stage", &role, &[&self.memory.file, &self.notes.file, &self.socket, end])
    }

    fn from_descriptors(me: NodeId, descriptors: &mut Vec<OwnedFd>) -> (Mesh, Notes, OwnedFd) {
        let [memory, notes, socket, end] = std::mem::take(descriptors).try_into().unwrap();
        let sockets = if me == N0 { vec![None, Some(socket)] } else { vec![Some(socket), None] };
        let mesh = Memory::map(memory, Mesh::bytes(2)).mesh(me, sockets);
        (mesh, Notes::new(&Memory::map(notes, NOTE_BYTES)), end)
    }
}

/// The part of every process but the test's own; without a role it does nothing.
#[test]
fn stage() {
    let Some((role, mut descriptors)) = support::role() else { return };
    let [part, me, index]: [&str; 3] = role.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let me = NodeId(me.parse().unwrap());
    let index = index.parse().unwrap();
    let (mesh, notes, end) = Node::from_descriptors(me, &mut descriptors);
    let other = NodeId(1 - me.0);
    match part {
        "exchange" => exchange(&Delay::new(mesh, index as u64 * 77 + u64::from(me.0)), other, index, &notes, &end),
        "receive" => receive(&mesh, &notes, &end),
        "echo" => echo(&mesh, &end),
        "victim" => victim(&mesh, other),
        unknown => panic!("no such part: {unknown}"),
    }
}

/// Handles what comes until the test closes its end of the pipe.
fn receive(mesh: &Mesh, notes: &Notes, end: &OwnedFd) {
    loop {
        mesh.poll(&mut |_, message| notes.check(message));
        match mesh.wait(None, Some(end.as_fd())) {
            Wait::Ready => {}
            Wait::Also => return,
            unexpected @ (Wait::TimedOut | Wait::PeerGone(_)) => panic!("{unexpected:?}"),
        }
    }
}

/// Sends all its messages and handles whatever comes, until the test says that both nodes have everything.
fn exchange(mesh: &Delay<Mesh>, other: NodeId, sender: usize, notes: &Notes, end: &OwnedFd) {
    let mut sent = 0;
    loop {
        while sent < EACH && mesh.send(other, &[&[sender as u8], &sent.to_le_bytes(), &body(sent)]).is_ok() {
            sent += 1;
            if sent % 16 == 0 {
                mesh.flush();
                mesh.poll(&mut |_, message| notes.check(message));
            }
        }
        mesh.poll(&mut |_, message| notes.check(message));
        match mesh.wait(None, Some(end.as_fd())) {
            Wait::Ready => {}
            Wait::Also => return,
            unexpected @ (Wait::TimedOut | Wait::PeerGone(_)) => panic!("{unexpected:?}"),
        }
    }
}

fn echo(mesh: &Mesh, end: &OwnedFd) {
    loop {
        mesh.poll(&mut |from, message| mesh.send(from, &[message]).unwrap());
        if mesh.wait(None, Some(end.as_fd())) == Wait::Also {
            return;
        }
    }
}

/// Sends, says that it has, and waits to be killed.
fn victim(mesh: &Mesh, other: NodeId) {
    mesh.send(other, &[b"last words"]).unwrap();
    mesh.flush();
    loop {
        mesh.wait(None, None);
    }
}

/// Processes, ended by closing the pipe; a test that fails before kills them.
struct Cast {
    processes: Vec<Child>,
    end: Option<PipeWriter>,
}

impl Cast {
    fn finish(mut self) {
        self.end = None;
        for process in &mut self.processes {
            assert!(process.wait().unwrap().success(), "a process found something wrong");
        }
        self.processes.clear();
    }

    fn is_well(&mut self) {
        for process in &mut self.processes {
            assert_eq!(process.try_wait().unwrap(), None, "a process ended before the end");
        }
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn cast(start: impl FnOnce(&OwnedFd) -> Vec<Child>) -> Cast {
    let (reader, writer) = pipe().unwrap();
    let processes = start(&reader.into());
    Cast { processes, end: Some(writer) }
}

#[test]
fn several_receiving_processes_of_a_node_handle_each_message_once_in_order() {
    let (zero, one) = Node::pair(false);
    let mut receivers = cast(|end| (0..3).map(|index| one.start("receive", index, end)).collect());
    let mesh = zero.memory.mesh(N0, vec![None, Some(support::duplicate(&zero.socket))]);
    std::thread::scope(|threads| {
        for sender in 0..SENDERS {
            let mesh = &mesh;
            threads.spawn(move || {
                for number in 0..EACH {
                    while mesh.send(N1, &[&[sender as u8], &number.to_le_bytes(), &body(number)]).is_err() {
                        mesh.wait(None, None);
                    }
                    mesh.flush();
                }
            });
        }
    });
    let notes = Notes::new(&one.notes);
    while !notes.is_complete() {
        mesh.flush();
        receivers.is_well();
        std::thread::yield_now();
    }
    receivers.finish();
}

#[test]
fn large_volumes_both_ways_through_tiny_kernel_buffers_all_arrive() {
    let (zero, one) = Node::pair(true);
    let mut all = cast(|end| {
        let both = [&zero, &one].into_iter();
        both.flat_map(|node| (0..SENDERS).map(move |index| node.start("exchange", index, end))).collect()
    });
    let notes = [Notes::new(&zero.notes), Notes::new(&one.notes)];
    while !notes.iter().all(Notes::is_complete) {
        all.is_well();
        std::thread::yield_now();
    }
    all.finish();
}

#[test]
fn answers_from_handlers_of_several_processes_come_back_in_order() {
    let (zero, one) = Node::pair(false);
    let mut echoes = cast(|end| (0..2).map(|index| one.start("echo", index, end)).collect());
    let mesh = zero.memory.mesh(N0, vec![None, Some(support::duplicate(&zero.socket))]);
    let (mut sent, mut got) = (0_u64, 0_u64);
    while got < EACH {
        while sent < EACH && sent < got + 100 {
            mesh.send(N1, &[&sent.to_le_bytes()]).unwrap();
            sent += 1;
        }
        mesh.flush();
        mesh.poll(&mut |_, answer| {
            assert_eq!(answer, got.to_le_bytes());
            got += 1;
        });
        echoes.is_well();
        if got < sent {
            assert_eq!(mesh.wait(None, None), Wait::Ready);
        }
    }
    echoes.finish();
}

#[test]
fn a_killed_peer_is_gone_after_its_last_words() {
    let (zero, one) = Node::pair(false);
    let mut victim = cast(|end| vec![one.start("victim", 0, end)]);
    drop(one);
    let mesh = zero.memory.mesh(N0, vec![None, Some(zero.socket)]);
    let mut heard = Vec::new();
    while heard.is_empty() {
        assert_eq!(mesh.wait(None, None), Wait::Ready);
        mesh.poll(&mut |_, message| heard.extend_from_slice(message));
    }
    assert_eq!(heard, b"last words");
    victim.processes[0].kill().unwrap();
    let mut waits = 0;
    while mesh.wait(None, None) != Wait::PeerGone(N1) {
        mesh.poll(&mut |_, _| unreachable!("the dead say nothing"));
        waits += 1;
    }
    assert!(waits <= 3, "the end was looked for {waits} times");
    assert!(mesh.send(N1, &[b"?"]).is_err());
    victim.end.as_mut().unwrap().flush().unwrap();
}
