//! What a round trip through a mesh costs, beside the same round trip over a plain socket, in the same run.
//!
//! Two processes of this program; 64 bytes there, 64 or 4096 bytes back; both sides either look again and again
//! (busy) or sleep in the kernel until something comes (blocking). Plain and mesh take turns in rounds, so that
//! other load meets both; smallest and median of all round trips, in microseconds.
//!
//! `cargo run --release -p finespun-transport --example transport_cost [busy] [blocking]`; what blocking costs beside the wake-up shows
//! on one core (`taskset -c 0`), where busy makes no sense.

#[path = "../tests/support/mod.rs"]
mod support;

use finespun_transport::{Mesh, Messages, Sleep};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use support::{Memory, N0, N1, sockets};

const ROUNDS: usize = 20;
const TRIPS: usize = 500;
const REQUEST_BYTES: usize = 64;

/// Request and answer over a plain socket; the first bytes of a request say how long the answer shall be.
struct Plain {
    stream: TcpStream,
    is_busy: bool,
}

impl Plain {
    fn read(&mut self, bytes: &mut [u8]) -> Option<()> {
        let mut got = 0;
        while got < bytes.len() {
            match self.stream.read(&mut bytes[got..]) {
                Ok(0) => return None,
                Ok(count) => got += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.is_busy => {}
                Err(error) => panic!("{error}"),
            }
        }
        Some(())
    }

    fn serve(mut self) {
        let mut request = [0; REQUEST_BYTES];
        while self.read(&mut request).is_some() {
            let answer = [1; 4096];
            self.stream.write_all(&answer[..length(&request)]).unwrap();
        }
    }

    fn ask(&mut self, request: &[u8], answer: &mut [u8]) {
        self.stream.write_all(request).unwrap();
        self.read(answer).unwrap();
    }
}

fn length(request: &[u8]) -> usize {
    u64::from_le_bytes(request[..8].try_into().unwrap()) as usize
}

/// Something to watch beside the connections, as every user of a mesh has.
fn never() -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::mem::forget(theirs);
    ours
}

fn serve(mesh: &Mesh, is_busy: bool) {
    let never = never();
    let waiter = mesh.waiter(never.as_fd()).unwrap();
    while mesh.gone().is_empty() {
        if !is_busy {
            waiter.sleep();
        }
        mesh.poll(&mut |from, request| {
            mesh.send(from, &[&[1; 4096][..length(request)]]).unwrap();
        });
        mesh.flush();
    }
}

fn ask(mesh: &Mesh, waiter: &dyn Sleep, request: &[u8], answer: &mut [u8], is_busy: bool) {
    mesh.send(N1, &[request]).unwrap();
    mesh.flush();
    let mut answers = 0;
    while answers == 0 {
        if !is_busy {
            waiter.sleep();
        }
        answers = mesh.poll(&mut |_, bytes| answer.copy_from_slice(bytes));
    }
}

fn time(times: &mut Vec<u64>, mut trip: impl FnMut()) {
    for _ in 0..TRIPS {
        let start = Instant::now();
        trip();
        times.push(start.elapsed().as_nanos() as u64);
    }
}

/// The peer: one process per kind, so that no server's polling disturbs the other kind's trips for long.
fn peer(role: &str, socket: OwnedFd) {
    let (kind, mode) = role.split_once(' ').unwrap();
    let is_busy = mode == "busy";
    if kind == "plain" {
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(is_busy).unwrap();
        Plain { stream, is_busy }.serve();
    } else {
        serve(&Memory::new(Mesh::bytes(2)).mesh(N1, vec![Some(socket), None]), is_busy);
    }
}

/// One round of one kind: a fresh peer process, a warm-up, then the trips.
fn round(kind: &str, mode: &str, answer_bytes: usize, times: &mut Vec<u64>) {
    let (near, far) = sockets(false);
    let mut peer = support::start("", &format!("{kind} {mode}"), &[&far]);
    drop(far);
    let is_busy = mode == "busy";
    let mut request = [0; REQUEST_BYTES];
    request[..8].copy_from_slice(&(answer_bytes as u64).to_le_bytes());
    let mut answer = vec![0; answer_bytes];
    let mut unused = Vec::new();
    if kind == "plain" {
        let stream = TcpStream::from(near);
        stream.set_nonblocking(is_busy).unwrap();
        let mut plain = Plain { stream, is_busy };
        time(&mut unused, || plain.ask(&request, &mut answer));
        time(times, || plain.ask(&request, &mut answer));
    } else {
        let mesh = Memory::new(Mesh::bytes(2)).mesh(N0, vec![None, Some(near)]);
        let never = never();
        let waiter = mesh.waiter(never.as_fd()).unwrap();
        time(&mut unused, || ask(&mesh, &*waiter, &request, &mut answer, is_busy));
        time(times, || ask(&mesh, &*waiter, &request, &mut answer, is_busy));
    }
    peer.wait().unwrap();
}

fn main() {
    if let Some((role, mut descriptors)) = support::role() {
        return peer(&role, descriptors.remove(0));
    }
    println!("{:22} {:>16} {:>16} {:>12}", "64 B there, us", "plain min/p50", "mesh min/p50", "ratio");
    let asked: Vec<String> = std::env::args().skip(1).collect();
    for mode in ["busy", "blocking"] {
        if !asked.is_empty() && !asked.iter().any(|name| name == mode) {
            continue;
        }
        for answer_bytes in [64, 4096] {
            let (mut plain, mut mesh) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                round("plain", mode, answer_bytes, &mut plain);
                round("mesh", mode, answer_bytes, &mut mesh);
            }
            let us = |times: &mut Vec<u64>| {
                times.sort_unstable();
                [times[0], times[times.len() / 2]].map(|nanos| nanos as f64 / 1000.0)
            };
            let ([plain_min, plain_p50], [mesh_min, mesh_p50]) = (us(&mut plain), us(&mut mesh));
            println!(
                "{:22} {plain_min:7.2}/{plain_p50:8.2} {mesh_min:7.2}/{mesh_p50:8.2} {:5.2}/{:5.2}",
                format!("{mode}, {answer_bytes} B back"),
                mesh_min / plain_min,
                mesh_p50 / plain_p50
            );
        }
    }
}
