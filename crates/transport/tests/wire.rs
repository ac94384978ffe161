//! Who is let into a job's mesh, and who is not. Deadlines are far away: a test that meets one has failed.

use finespun_transport::wire::{self, Connected, Hello, Token, WireError};
use finespun_types::NodeId;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const TOKEN: Token = [0x5a; 32];
const WRONG: Token = [0xa5; 32];
/// Bytes of what a node says first.
const OPENING: usize = 72;

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn hello(node: u8) -> Hello {
    [node; wire::HELLO_BYTES]
}

fn join(me: u8, listener: TcpListener, ports: &[u16], token: &Token) -> Result<Connected, WireError> {
    wire::connect_mesh(NodeId(me.into()), listener, ports, token, &hello(me), far_away())
}

fn listeners(count: usize) -> (Vec<TcpListener>, Vec<u16>) {
    (0..count).map(|_| wire::listen().unwrap()).unzip()
}

/// All nodes of a job join, each in a thread; `strangers` runs once the ports are known.
fn whole_job<T>(nodes: usize, strangers: impl FnOnce(&[u16]) -> T) -> (Vec<Connected>, T) {
    let (listeners, ports) = listeners(nodes);
    let kept = strangers(&ports);
    let connected = std::thread::scope(|threads| {
        let ports = &ports;
        let joining: Vec<_> =
            (0..).zip(listeners).map(|(me, l)| threads.spawn(move || join(me, l, ports, &TOKEN))).collect();
        joining.into_iter().map(|node| node.join().unwrap().unwrap()).collect()
    });
    (connected, kept)
}

/// Connections that say `what` and nothing else, as many as asked for, whether there is a place for them or not.
fn strangers(count: usize, port: u16, what: &[u8]) -> Vec<OwnedFd> {
    let connect = |_| {
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, flags, None);
        let socket = socket.unwrap();
        let _ = rustix::net::connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        let _ = rustix::net::send(&socket, what, rustix::net::SendFlags::NOSIGNAL);
        socket
    };
    (0..count).map(connect).collect()
}

/// Waits until a connection is there to be accepted.
fn wait_for_a_connection(listener: &TcpListener) {
    let mut watched = [rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut watched, None).unwrap();
}

/// Node 1 connects to node 0, `strangers` come behind it, and only then node 0 begins to accept.
fn late_node_0(strangers: impl FnOnce(u16) -> Vec<OwnedFd>) -> (Connected, Connected) {
    let (mut listeners, ports) = listeners(2);
    let one = listeners.pop().unwrap();
    let zero = listeners.pop().unwrap();
    std::thread::scope(|threads| {
        let ports = &ports;
        let joining = threads.spawn(move || join(1, one, ports, &TOKEN));
        wait_for_a_connection(&zero);
        let kept = strangers(ports[0]);
        let zero = join(0, zero, ports, &TOKEN).unwrap();
        drop(kept);
        (zero, joining.join().unwrap().unwrap())
    })
}

fn stream(connected: &mut Connected, node: usize) -> TcpStream {
    let socket: OwnedFd = connected.sockets[node].take().unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).unwrap();
    stream
}

#[test]
fn every_node_is_connected_to_every_other_and_hears_its_hello() {
    let (mut nodes, ()) = whole_job(5, |_| ());
    for a in 0..5 {
        assert_eq!(nodes[a].refused, 0);
        assert!(nodes[a].sockets[a].is_none() && nodes[a].hellos[a].is_none());
        for b in a + 1..5 {
            assert_eq!(nodes[a].hellos[b], Some(hello(b as u8)));
            assert_eq!(nodes[b].hellos[a], Some(hello(a as u8)));
            let (mut here, mut there) = (stream(&mut nodes[a], b), stream(&mut nodes[b], a));
            here.write_all(&[a as u8, b as u8]).unwrap();
            let mut got = [0; 2];
            there.read_exact(&mut got).unwrap();
            assert_eq!(got, [a as u8, b as u8]);
            assert!(here.nodelay().unwrap() && there.nodelay().unwrap());
        }
    }
}

#[test]
fn a_job_of_one_node_needs_no_connection() {
    let (nodes, ()) = whole_job(1, |_| ());
    assert!(nodes[0].sockets[0].is_none());
}

#[test]
fn silent_strangers_delay_nobody() {
    let connect = |ports: &[u16]| -> Vec<TcpStream> {
        ports.iter().flat_map(|&port| [port; 5]).map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect()
    };
    let (nodes, strangers) = whole_job(3, connect);
    assert!(nodes.iter().all(|node| node.sockets.iter().flatten().count() == 2));
    drop(strangers);
}

#[test]
fn more_strangers_than_there_are_places_are_dropped_and_counted() {
    let connect = |ports: &[u16]| -> Vec<TcpStream> {
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", ports[0])).unwrap()).collect()
    };
    let (nodes, strangers) = whole_job(2, connect);
    assert!(nodes[0].refused >= 30, "{} were refused", nodes[0].refused);
    drop(strangers);
}

#[test]
fn silent_strangers_push_out_no_node_that_came_before_them() {
    let (zero, one) = late_node_0(|port| strangers(420, port, b""));
    assert_eq!((zero.hellos[1], one.hellos[0]), (Some(hello(1)), Some(hello(0))));
}

#[test]
fn strangers_who_talk_like_a_node_push_out_no_node_that_came_before_them() {
    let mut opening = [0; OPENING];
    opening[..8].copy_from_slice(b"fspW\x02\x01\x00\x00");
    let (zero, one) = late_node_0(|port| strangers(420, port, &opening));
    assert_eq!((zero.hellos[1], one.hellos[0]), (Some(hello(1)), Some(hello(0))));
}

#[test]
fn a_node_gets_in_though_strangers_have_taken_every_place_before_the_acceptor() {
    let (mut listeners, ports) = listeners(2);
    let one = listeners.pop().unwrap();
    let zero = listeners.pop().unwrap();
    rustix::net::listen(&zero, 1).unwrap();
    let kept = strangers(20, ports[0], b"");
    std::thread::scope(|threads| {
        let ports = &ports;
        let joining = threads.spawn(move || join(1, one, ports, &TOKEN));
        join(0, zero, ports, &TOKEN).unwrap();
        joining.join().unwrap().unwrap();
    });
    drop(kept);
}

#[test]
fn a_node_that_is_dropped_before_it_is_answered_comes_again() {
    let (mut listeners, ports) = listeners(2);
    let one = listeners.pop().unwrap();
    let zero = listeners.pop().unwrap();
    std::thread::scope(|threads| {
        let ports = &ports;
        let joining = threads.spawn(move || join(1, one, ports, &TOKEN));
        for _ in 0..3 {
            drop(zero.accept().unwrap());
        }
        join(0, zero, ports, &TOKEN).unwrap();
        joining.join().unwrap().unwrap();
    });
}

#[test]
fn strangers_who_talk_are_dropped_and_counted() {
    let talk = |ports: &[u16]| {
        for line in [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n-------------------"[..], &[0; 300], b"fspW"] {
            TcpStream::connect(("127.0.0.1", ports[0])).unwrap().write_all(line).unwrap();
        }
    };
    let (nodes, ()) = whole_job(2, talk);
    assert_eq!(nodes[0].refused, 3);
}

#[test]
fn a_wrong_token_is_refused_and_the_job_goes_on() {
    let (mut listeners, ports) = listeners(2);
    let one = listeners.pop().unwrap();
    let zero = listeners.pop().unwrap();
    std::thread::scope(|threads| {
        let ports = &ports;
        let waiting = threads.spawn(move || join(0, zero, ports, &TOKEN));
        let (elsewhere, _) = wire::listen().unwrap();
        let refused = join(1, elsewhere, ports, &WRONG);
        assert!(matches!(refused, Err(WireError::Unproven { node: NodeId(0) })), "{refused:?}");
        let right = join(1, one, ports, &TOKEN).unwrap();
        assert_eq!(right.hellos[0], Some(hello(0)));
        assert_eq!(waiting.join().unwrap().unwrap().refused, 1);
    });
}

#[test]
fn an_acceptor_that_returns_the_proof_it_got_is_not_believed() {
    let (mirror, port) = wire::listen().unwrap();
    let (own, own_port) = wire::listen().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let (mut stream, _) = mirror.accept().unwrap();
            let (mut opening, mut proof) = ([0; OPENING], [0; 96]);
            stream.read_exact(&mut opening).unwrap();
            stream.write_all(&opening[8..40]).unwrap();
            stream.read_exact(&mut proof).unwrap();
            stream.write_all(&proof).unwrap();
        });
        let fooled = join(1, own, &[port, own_port], &TOKEN);
        assert!(matches!(fooled, Err(WireError::Unproven { node: NodeId(0) })), "{fooled:?}");
    });
}

#[test]
fn a_proof_heard_before_opens_nothing_later() {
    // Between node 1 and node 0 stands somebody who writes down what node 1 says.
    let (listener, port) = wire::listen().unwrap();
    let (between, between_port) = wire::listen().unwrap();
    let (own, own_port) = wire::listen().unwrap();
    let (recorded, later) = std::thread::scope(|threads| {
        let joining = threads.spawn(move || join(1, own, &[between_port, own_port], &TOKEN));
        let again = listener.try_clone().unwrap();
        let waiting = threads.spawn(move || join(0, listener, &[port, own_port], &TOKEN));
        let (mut from_one, _) = between.accept().unwrap();
        let mut to_zero = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut opening, mut nonce, mut proof) = ([0; OPENING], [0; 32], [0; 96]);
        from_one.read_exact(&mut opening).unwrap();
        to_zero.write_all(&opening).unwrap();
        to_zero.read_exact(&mut nonce).unwrap();
        from_one.write_all(&nonce).unwrap();
        from_one.read_exact(&mut proof).unwrap();
        to_zero.write_all(&proof).unwrap();
        waiting.join().unwrap().unwrap();
        drop(from_one);
        assert!(joining.join().unwrap().is_err());
        ((opening, proof), again)
    });
    std::thread::scope(|threads| {
        let deadline = Instant::now() + Duration::from_secs(60);
        let waiting =
            threads.spawn(move || wire::connect_mesh(NodeId(0), later, &[port, own_port], &TOKEN, &hello(0), deadline));
        let mut replay = TcpStream::connect(("127.0.0.1", port)).unwrap();
        replay.write_all(&recorded.0).unwrap();
        replay.write_all(&recorded.1).unwrap();
        let mut answer = Vec::new();
        // Nothing but the nonce, then the end: whether as such or as a reset.
        let _ = replay.read_to_end(&mut answer);
        assert_eq!(answer.len(), 32);
        let (own, _) = wire::listen().unwrap();
        join(1, own, &[port, own_port], &TOKEN).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap().refused, 1);
    });
}

#[test]
fn a_node_that_never_comes_is_named_at_the_deadline() {
    let (mut listeners, ports) = listeners(3);
    let stranger = TcpStream::connect(("127.0.0.1", ports[0])).unwrap();
    let zero = listeners.remove(0);
    let missing = wire::connect_mesh(NodeId(0), zero, &ports, &TOKEN, &hello(0), Instant::now());
    let Err(WireError::Missing { nodes, .. }) = missing else { panic!("{missing:?}") };
    assert_eq!(nodes, [NodeId(1), NodeId(2)]);
    drop(stranger);
}

#[test]
fn a_port_where_nobody_listens_is_named() {
    let (mut listeners, ports) = listeners(2);
    let one = listeners.pop().unwrap();
    drop(listeners);
    let unreachable = join(1, one, &ports, &TOKEN);
    assert!(matches!(unreachable, Err(WireError::Unreachable { node: NodeId(0), .. })), "{unreachable:?}");
}
