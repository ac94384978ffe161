//! Nodes in one process over a loopback: what it promises, one promise each. A node's processes are attachments to the same memory.

mod support;

use finespun_transport::{AttachError, Delay, Loopback, MESSAGE_BYTES_MAX, Messages, SendError, Wait, doorbell};
use finespun_types::{NodeId, NodeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use support::{Memory, N0, N1, body, every_length, receive};

const N2: NodeId = NodeId(2);

/// A job's part of a loopback.
struct Job {
    memory: Memory,
    doorbells: Vec<OwnedFd>,
}

impl Job {
    fn of(nodes: usize) -> Self {
        let memory = Memory::new(Loopback::<OwnedFd>::bytes(nodes));
        Self { memory, doorbells: (0..nodes).map(|_| doorbell().unwrap()).collect() }
    }

    /// A process of a node.
    fn process(&self, me: NodeId) -> Loopback<BorrowedFd<'_>> {
        let doorbells = self.doorbells.iter().map(AsFd::as_fd).collect();
        // SAFETY: the memory is mapped until the process ends; the tests use it for loopbacks only.
        unsafe { Loopback::attach(self.memory.start.as_ptr(), self.memory.len, me, doorbells) }.unwrap()
    }
}

#[test]
fn messages_of_every_length_arrive_whole_and_in_order() {
    let job = Job::of(2);
    let (zero, one) = (job.process(N0), job.process(N1));
    every_length(&zero, &one, |_| ());
    assert_eq!(zero.pending(), 0);
}

#[test]
fn nothing_leaves_before_a_flush_to_the_node() {
    let job = Job::of(3);
    let (zero, one, two) = (job.process(N0), job.process(N1), job.process(N2));
    for (to, text) in [(N1, b"one"), (N2, b"two")] {
        zero.send(to, &[text]).unwrap();
    }
    let count = |node: &Loopback<_>| node.poll(&mut |_, _| ());
    assert_eq!((zero.pending(), count(&one), count(&two)), (2 * (4 + 3), 0, 0));
    zero.flush_to(NodeSet::only(N2));
    assert_eq!((zero.pending(), count(&one), count(&two)), (2 * (4 + 3), 0, 1));
    zero.flush();
    assert_eq!((count(&one), count(&two), zero.pending()), (1, 0, 0));
}

#[test]
fn a_node_that_sleeps_is_woken_by_a_flush() {
    let job = Job::of(2);
    let (zero, one) = (job.process(N0), job.process(N1));
    let (never, _held) = std::io::pipe().unwrap();
    std::thread::scope(|threads| {
        let sleeper = threads.spawn(|| {
            let waiter = one.waiter(never.as_fd()).unwrap();
            for number in 0..1000_u64 {
                while one.poll(&mut |_, message| assert_eq!(message, number.to_le_bytes())) == 0 {
                    assert_eq!(waiter.sleep(), Wait::Ready);
                }
                one.send(N0, &[&number.to_le_bytes()]).unwrap();
                one.flush();
            }
        });
        for number in 0..1000_u64 {
            zero.send(N1, &[&number.to_le_bytes()]).unwrap();
            zero.flush();
            receive(&zero, 1, |message| assert_eq!(message, number.to_le_bytes()));
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn a_wait_ends_by_the_other_descriptor_and_by_its_time() {
    let job = Job::of(2);
    let one = job.process(N1);
    let (reader, writer) = std::io::pipe().unwrap();
    assert_eq!(one.wait(Some(Duration::from_micros(1)), Some(reader.as_fd())), Wait::TimedOut);
    drop(writer);
    assert_eq!(one.wait(None, Some(reader.as_fd())), Wait::Also);
}

#[test]
fn several_processes_of_a_node_handle_each_message_once_in_order() {
    const EACH: u64 = 3000;
    let job = Job::of(3);
    let expected = [const { AtomicU64::new(0) }; 2];
    let (reader, writer) = std::io::pipe().unwrap();
    let handle = |from: NodeId, message: &[u8]| {
        let expected = &expected[usize::from(from.0)];
        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
        assert_eq!(number, expected.load(SeqCst), "a message of {from:?} is lost, doubled or out of order");
        assert_eq!(message[8..], body(number));
        expected.store(number + 1, SeqCst);
    };
    let (reader, handle) = (&reader, &handle);
    std::thread::scope(|threads| {
        for sender in [N0, N1] {
            let node = job.process(sender);
            threads.spawn(move || {
                for number in 0..EACH {
                    while node.send(N2, &[&number.to_le_bytes(), &body(number)]).is_err() {
                        std::thread::yield_now();
                    }
                    node.flush();
                }
            });
        }
        let receivers = [(); 3].map(|()| {
            let node = job.process(N2);
            threads.spawn(move || {
                while node.wait(None, Some(reader.as_fd())) != Wait::Also {
                    node.poll(&mut |from, message| handle(from, message));
                }
            })
        });
        let node = job.process(N2);
        while expected.iter().any(|expected| expected.load(SeqCst) < EACH) {
            node.poll(&mut |from, message| handle(from, message));
            std::thread::yield_now();
        }
        drop(writer);
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    });
}

#[test]
fn a_full_queue_refuses_a_message_and_lets_go_what_it_has() {
    let job = Job::of(2);
    let (zero, one) = (job.process(N0), job.process(N1));
    let long = vec![7; MESSAGE_BYTES_MAX];
    let mut sent = 0;
    while zero.send(N1, &[&long]).is_ok() {
        sent += 1;
    }
    assert_eq!(zero.send(N1, &[&long]), Err(SendError::Full));
    receive(&one, sent, |message| assert_eq!(message, long));
    assert_eq!(zero.send(N1, &[&long]), Ok(()));
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let job = Job::of(2);
    let attach = |len, me, nodes| {
        let doorbells: Vec<_> = job.doorbells.iter().cycle().take(nodes).map(AsFd::as_fd).collect();
        // SAFETY: as in `Job::process`; what is too short is refused before it is used.
        unsafe { Loopback::attach(job.memory.start.as_ptr(), len, me, doorbells) }.err()
    };
    assert!(attach(job.memory.len, N0, 2).is_none());
    assert!(matches!(attach(job.memory.len - 1, N0, 2), Some(AttachError::TooSmall { .. })));
    assert!(matches!(attach(job.memory.len, N2, 2), Some(AttachError::WrongSockets)));
    assert!(matches!(attach(job.memory.len, N0, 1), Some(AttachError::OtherMesh)));
}

/// Nodes 0 and 1 send node 2 a message each, by turns, 200 times; the order in which they arrive.
fn arrivals(seed: u64) -> Vec<(u16, u64)> {
    let job = Job::of(3);
    let [zero, one, two] = [N0, N1, N2].map(|me| Delay::new(job.process(me), seed << 8 | u64::from(me.0)));
    let mut arrived = Vec::new();
    let mut poll = |two: &Delay<_>| {
        two.poll(&mut |from, message| arrived.push((from.0, u64::from_le_bytes(message.try_into().unwrap()))))
    };
    for number in 0..200_u64 {
        for node in [&zero, &one] {
            node.send(N2, &[&number.to_le_bytes()]).unwrap();
            node.flush();
            poll(&two);
        }
    }
    while zero.pending() + one.pending() > 0 {
        zero.flush();
        one.flush();
        poll(&two);
    }
    arrived
}

#[test]
fn delayed_messages_of_different_pairs_overtake_each_other_and_those_of_one_pair_do_not() {
    for seed in 0..20 {
        let arrived = arrivals(seed);
        for sender in [0, 1] {
            let of_one = arrived.iter().filter(|(from, _)| *from == sender).map(|(_, number)| *number);
            assert!(of_one.eq(0..200), "seed {seed}: {arrived:?}");
        }
        let overtaken = arrived.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
        assert!(overtaken > 10, "seed {seed}: {overtaken} messages of 400 overtaken");
        assert_eq!(arrived, arrivals(seed), "a seed repeats its run");
    }
}
