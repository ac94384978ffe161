//! Two nodes in one process: what a mesh promises, one promise each.

mod support;

use finespun_transport::{Delay, LossCause, Mesh, Messages, SendError, Wait};
use finespun_types::NodeId;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use support::{Memory, N0, N1, body, every_length, pair, receive};

#[test]
fn messages_of_every_length_arrive_whole_and_in_order() {
    let (zero, one) = pair(false);
    let count = every_length(&zero, &one, |zero| {
        while zero.pending() > 0 {
            zero.wait(None, None);
        }
    });
    assert_eq!(zero.traffic(N1).bytes_sent, one.traffic(N0).bytes_received);
    assert_eq!(one.traffic_total().messages_received, count as u64);
}

#[test]
fn nothing_leaves_before_a_flush() {
    let (zero, one) = pair(false);
    zero.send(N1, &[b"one"]).unwrap();
    zero.send(N1, &[b"two"]).unwrap();
    assert_eq!(zero.pending(), 2 * (4 + 3));
    assert_eq!(zero.traffic(N1).writes, 0);
    zero.flush();
    assert_eq!((zero.pending(), zero.traffic(N1).writes), (0, 1));
    let mut got = Vec::new();
    receive(&one, 2, |message| got.push(message.to_vec()));
    assert_eq!(got, [b"one", b"two"]);
}

#[test]
fn a_full_queue_refuses_a_message_and_loses_none() {
    let (zero, one) = pair(true);
    let mut sent = 0_u64;
    let filler = [7; 60_000];
    while zero.send(N1, &[&sent.to_le_bytes(), &filler]).is_ok() {
        sent += 1;
    }
    assert_eq!(zero.send(N1, &[&filler, &filler[..1000]]), Err(SendError::Full));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while zero.pending() > 0 {
                zero.wait(None, None);
            }
        });
        let mut expected = 0_u64;
        receive(&one, sent as usize, |message| {
            assert_eq!(message[..8], expected.to_le_bytes());
            expected += 1;
        });
    });
    assert_eq!(zero.send(N1, &[&filler]), Ok(()));
}

#[test]
fn a_sleeping_process_sends_what_a_busy_one_had_to_leave() {
    let (near, far) = support::sockets(true);
    let memory = Memory::new(Mesh::bytes(2));
    let sleeper = memory.mesh(N0, vec![None, Some(support::duplicate(&near))]);
    let busy = memory.mesh(N0, vec![None, Some(near)]);
    let one = Memory::new(Mesh::bytes(2)).mesh(N1, vec![Some(far), None]);
    std::thread::scope(|threads| {
        // Asleep before there is anything to send, or not: both must do.
        threads.spawn(|| {
            while sleeper.wait(None, None) != Wait::PeerGone(N1) {
                sleeper.poll(&mut |_, _| ());
            }
        });
        for number in 0..100_u64 {
            busy.send(N1, &[&number.to_le_bytes(), &[0; 50_000]]).unwrap();
        }
        busy.flush();
        // From here on the busy process computes, and never looks again.
        receive(&one, 100, |_| ());
        drop(one);
    });
}

#[test]
fn a_handler_may_answer_and_flush() {
    let (zero, one) = pair(false);
    let answered = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while answered.load(SeqCst) < 1000 {
                one.poll(&mut |from, message| {
                    one.send(from, &[message, b"!"]).unwrap();
                    one.flush();
                    answered.fetch_add(1, SeqCst);
                });
                one.wait(Some(Duration::from_millis(1)), None);
            }
        });
        for number in 0..1000_u64 {
            zero.send(N1, &[&number.to_le_bytes()]).unwrap();
            zero.flush();
            receive(&zero, 1, |answer| assert_eq!((&answer[..8], answer[8]), (&number.to_le_bytes()[..], b'!')));
        }
    });
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a handler must not poll")]
fn a_handler_that_polls_is_a_bug() {
    let (zero, one) = pair(false);
    zero.send(N1, &[b"?"]).unwrap();
    zero.flush();
    receive(&one, 1, |_| {
        one.poll(&mut |_, _| ());
    });
}

#[test]
fn a_message_whose_handler_panicked_does_not_come_again() {
    let (zero, one) = pair(false);
    zero.send(N1, &[b"first"]).unwrap();
    zero.send(N1, &[b"second"]).unwrap();
    zero.flush();
    one.wait(None, None);
    let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.poll(&mut |_, _| panic!("a bug"))));
    assert!(first.is_err());
    zero.send(N1, &[b"third"]).unwrap();
    zero.flush();
    let mut got = Vec::new();
    receive(&one, 2, |message| got.push(message.to_vec()));
    assert_eq!(got, [&b"second"[..], b"third"]);
}

#[test]
fn a_lost_peer_is_reported_once_after_its_last_message() {
    let (zero, one) = pair(false);
    zero.send(N1, &[b"farewell"]).unwrap();
    zero.flush();
    drop(zero);
    let mut got = Vec::new();
    receive(&one, 1, |message| got.push(message.to_vec()));
    assert_eq!(got, [b"farewell"]);
    while !one.gone().contains(N0) {
        assert_eq!(one.wait(None, None), Wait::Ready);
        one.poll(&mut |_, _| unreachable!("nothing was sent after the farewell"));
    }
    assert_eq!(one.loss(N0), Some(LossCause::Closed));
    assert_eq!(one.wait(None, None), Wait::PeerGone(N0));
    assert_eq!(one.wait(Some(Duration::ZERO), None), Wait::TimedOut);
    assert_eq!(one.send(N0, &[b"too late"]), Err(SendError::Closed));
    assert_eq!((one.pending(), one.poll(&mut |_, _| ())), (0, 0));
}

#[test]
fn a_node_that_leaves_is_gone_although_its_processes_live() {
    let (zero, one) = pair(false);
    zero.send(N1, &[b"last"]).unwrap();
    zero.leave();
    assert_eq!(zero.send(N1, &[b"?"]), Err(SendError::Closed));
    let mut got = 0;
    while one.take_gone() != Some(N0) {
        got += one.poll(&mut |_, message| assert_eq!(message, b"last"));
        if !one.gone().contains(N0) {
            assert_eq!(one.wait(None, None), Wait::Ready);
        }
    }
    assert_eq!(got, 1);
}

#[test]
fn a_length_that_no_peer_sends_ends_the_connection() {
    let (near, far) = support::sockets(false);
    let one = Memory::new(Mesh::bytes(2)).mesh(N1, vec![Some(far), None]);
    TcpStream::from(near).write_all(&[0xff; 100]).unwrap();
    while one.loss(N0).is_none() {
        one.wait(None, None);
        one.poll(&mut |_, _| unreachable!("no message is that long"));
    }
    assert_eq!(one.loss(N0), Some(LossCause::Malformed));
}

#[test]
fn a_wait_ends_when_the_other_descriptor_is_readable() {
    let (zero, _one) = pair(false);
    let (reader, writer) = std::io::pipe().unwrap();
    assert_eq!(zero.wait(Some(Duration::ZERO), Some(reader.as_fd())), Wait::TimedOut);
    drop(writer);
    assert_eq!(zero.wait(None, Some(reader.as_fd())), Wait::Also);
}

#[test]
fn a_waiter_ends_for_what_a_wait_ends_for() {
    let (zero, one) = pair(false);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let waiter = one.waiter(reader.as_fd()).unwrap();
    for number in 0..3 {
        zero.send(N1, &[&[number]]).unwrap();
        zero.flush();
        assert_eq!(waiter.sleep(), Wait::Ready);
        assert_eq!(one.poll(&mut |_, message| assert_eq!(message, [number])), 1);
    }
    // What the waiter's own node has queued leaves when it sleeps.
    one.send(N0, &[b"last"]).unwrap();
    zero.leave();
    assert_eq!(waiter.sleep(), Wait::Ready);
    one.poll(&mut |_, _| panic!("it has said nothing more"));
    assert_eq!(waiter.sleep(), Wait::PeerGone(N0));
    // A connection at its end is readable for ever: it must not end every wait from here on.
    writer.write_all(b"!").unwrap();
    assert_eq!(waiter.sleep(), Wait::Also);
    receive(&zero, 1, |message| assert_eq!(message, b"last"));
}

#[test]
fn a_waiter_sends_what_a_busy_process_had_to_leave() {
    let (zero, one) = pair(true);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let waiter = zero.waiter(reader.as_fd()).unwrap();
    let message = vec![7; 10_000];
    let mut count = 0;
    while zero.send(N1, &[&message]).is_ok() {
        count += 1;
    }
    std::thread::scope(|threads| {
        threads.spawn(|| while waiter.sleep() != Wait::Also {});
        receive(&one, count, |got| assert_eq!(got, message));
        writer.write_all(b"!").unwrap();
    });
}

#[test]
fn memory_of_another_node_is_refused() {
    let (near, far) = support::sockets(false);
    let memory = Memory::new(Mesh::bytes(2));
    let _zero = memory.mesh(N0, vec![None, Some(near)]);
    // SAFETY: the memory stays mapped, and is used for nothing but meshes: that is what must be noticed.
    let other = unsafe { Mesh::attach(memory.start.as_ptr(), memory.len, N1, 2, vec![Some(far), None]) };
    assert!(matches!(other, Err(finespun_transport::AttachError::OtherMesh)));
}

/// Sends 300 messages to the other node and handles the 300 that come from it.
fn exchange(mesh: &Delay<Mesh>, to: NodeId, seed: u64) {
    let (mut sent, mut got) = (0, 0);
    while sent < 300 || got < 300 || mesh.pending() > 0 {
        if sent < 300 && mesh.send(to, &[&body(sent)]).is_ok() {
            sent += 1;
        }
        mesh.flush();
        mesh.poll(&mut |_, message| {
            assert_eq!(message, body(got), "seed {seed}");
            got += 1;
        });
        if sent == 300 && got < 300 {
            assert_eq!(mesh.wait(None, None), Wait::Ready);
        }
    }
}

#[test]
fn with_delays_everything_still_arrives_once_and_in_order() {
    for seed in 0..20 {
        let (zero, one) = pair(true);
        let (zero, one) = (Delay::new(zero, seed), Delay::new(one, !seed));
        std::thread::scope(|threads| {
            threads.spawn(|| exchange(&zero, N1, seed));
            exchange(&one, N0, seed);
        });
        assert_eq!(zero.inner().traffic(N1).messages_received, 300);
    }
}
