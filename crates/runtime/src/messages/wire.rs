//! Messages between engines, for a transport that only carries bytes.
//!
//! Every message begins with one fixed header; contents may follow. The numbers and words of events and of messages about mutexes that
//! migrate come from their catalogues ([`finespun_types::catalogue`]), in crate `sync`. What a [`Letter`] between engines of consistency means, and what
//! they tell along with requests and answers, they alone know.
//!
//! ```text
//!   kind u8 | detail u8 | flags u16 | unit or processor u32 | a u64 | b u64 | c u64 | contents ...
//! ```

use finespun_engine::objects::Mailbox;
use finespun_sync::{Event, migratory, threads};
use finespun_transport::SendError;
use finespun_types::{NodeId, ProcessorId};

use crate::node::cluster::Cluster;
use crate::node::misuse;

/// Bytes before a message's contents.
pub const HEADER_BYTES: usize = 32;

/// The most pieces that joined messages are put together from.
pub const JOINED_PIECES_MAX: usize = 64;

/// The fixed words of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    kind: u8,
    detail: u8,
    flags: u16,
    target: u32,
    a: u64,
    b: u64,
    c: u64,
}

/// What engines tell each other, besides the protocol's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// An event for a synchronization object managed by the receiver, answered by [`Reply`].
    Object {
        /// Who asks.
        who: ProcessorId,
        /// What.
        event: Event,
    },
    /// A message about a mutex whose ownership migrates.
    Migratory {
        /// Which mutex.
        mutex: u64,
        /// What.
        message: migratory::Message,
    },
    /// An event for the job's threads, at node 0, answered by [`Reply`].
    Thread {
        /// Who asks.
        who: ProcessorId,
        /// What.
        event: threads::Event,
    },
    /// A processor of the receiver is to run a function.
    Start {
        /// Which.
        who: ProcessorId,
        /// The function, as an offset in the program.
        function: u64,
        /// Its argument.
        argument: u64,
        /// The thread.
        thread: threads::Handle,
    },
    /// The receiver's serving processors are to end.
    Stop,
    /// A process of this build joins; node 0 answers with the build of the first that came.
    Build {
        /// Who asks.
        who: ProcessorId,
        /// A hash of the program's build.
        build: u64,
    },
    /// A call of the heap, at node 0, answered by [`Reply`].
    Heap {
        /// Who asks.
        who: ProcessorId,
        /// Which call: see [`crate::sync::memory`].
        call: u8,
        /// Its arguments.
        arguments: [u64; 3],
    },
    /// Which of the units that the receiver manages were touched, answered by [`Reply`]: see [`crate::sync::touched`].
    Touched {
        /// Who asks.
        who: ProcessorId,
        /// The first unit.
        start: u32,
        /// The unit behind the last.
        end: u32,
    },
}

/// The answer that a waiting processor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Where it goes.
    pub mailbox: Mailbox,
    /// 0, or the status of an error, whose text follows as the message's contents.
    pub status: u16,
    /// The result.
    pub value: u64,
    /// More of it.
    pub extra: u64,
}

/// A message between two engines of consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter<'a> {
    /// About which unit.
    pub unit: u32,
    /// Its number, and a word.
    pub msg: (u8, u64),
    /// The engine's own.
    pub flags: u16,
    /// What follows.
    pub contents: &'a [u8],
}

/// One message, taken apart.
pub enum Packet<'a> {
    /// For the engine of consistency.
    Letter(Letter<'a>),
    /// Several for a home-based one: see [`crate::consistency::join`].
    Joined(&'a [u8]),
    /// A request.
    Request {
        /// What.
        request: Request,
        /// What the engine of consistency tells along.
        along: &'a [u8],
    },
    /// An answer to a processor of this node.
    Reply {
        /// Which.
        who: ProcessorId,
        /// The answer.
        reply: Reply,
        /// What it is an answer of: see [`crate::node::carriers`].
        about: u64,
        /// The text of an error, or what the engine of consistency tells along.
        contents: &'a [u8],
    },
}

const LETTER: u8 = 1;
const OBJECT: u8 = 2;
const THREAD: u8 = 3;
const START: u8 = 4;
const STOP: u8 = 5;
const HEAP: u8 = 6;
const REPLY: u8 = 7;
const BUILD: u8 = 8;
const MIGRATORY: u8 = 9;
const JOINED: u8 = 32;
const TOUCHED: u8 = 11;

impl Words {
    fn bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind;
        bytes[1] = self.detail;
        bytes[2..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.target.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.a.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.b.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.c.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let first = word(0);
        Self {
            kind: first as u8,
            detail: (first >> 8) as u8,
            flags: (first >> 16) as u16,
            target: (first >> 32) as u32,
            a: word(8),
            b: word(16),
            c: word(24),
        }
    }
}

/// Sends a message of an engine of consistency, with more contents behind its own.
pub fn send_letter(cluster: &Cluster, to: NodeId, letter: Letter<'_>, more: &[u8]) {
    let Letter { unit, msg: (detail, a), flags, contents } = letter;
    let words = Words { kind: LETTER, detail, flags, target: unit, a, ..Words::default() };
    send_parts(cluster, to, &[&words.bytes(), contents, more]);
}

/// Sends several messages of the protocol in one: see [`crate::consistency::join`].
pub fn send_joined(cluster: &Cluster, to: NodeId, pieces: &[&[u8]]) {
    let words = Words { kind: JOINED, ..Words::default() }.bytes();
    let mut all = [&[][..]; 1 + JOINED_PIECES_MAX];
    all[0] = &words;
    all[1..=pieces.len()].copy_from_slice(pieces);
    send_parts(cluster, to, &all[..=pieces.len()]);
}

/// Sends a request, and what the engine of consistency tells along.
pub fn send_request(cluster: &Cluster, to: NodeId, request: Request, along: &[u8]) {
    send_parts(cluster, to, &[&request_words(request).bytes(), along]);
}

/// Sends an answer of a carrier; `contents` words an error, or is told along.
pub fn send_reply(cluster: &Cluster, to: NodeId, who: ProcessorId, reply: Reply, about: u64, contents: &[u8]) {
    send_parts(cluster, to, &[&reply_words(who, reply, about).bytes(), contents]);
}

fn send_parts(cluster: &Cluster, to: NodeId, parts: &[&[u8]]) {
    match cluster.mesh().send(to, parts) {
        // A lost peer ends the job; the launcher says so. Until it does there is nothing to be done here.
        Ok(()) | Err(SendError::Closed) => {}
        Err(SendError::Full) => misuse::queue_full(cluster, to),
    }
}

fn reply_words(who: ProcessorId, reply: Reply, about: u64) -> Words {
    let Reply { mailbox, status, value, extra } = reply;
    let detail = (mailbox == Mailbox::Signal) as u8;
    Words { kind: REPLY, detail, target: who.0, flags: status, a: value, b: extra, c: about }
}

fn request_words(request: Request) -> Words {
    match request {
        Request::Object { who, event } => {
            let (detail, [a, b, c]) = event.words();
            Words { kind: OBJECT, detail, target: who.0, a, b, c, ..Words::default() }
        }
        Request::Migratory { mutex, message } => {
            let (detail, b) = message.words();
            Words { kind: MIGRATORY, detail, a: mutex, b, ..Words::default() }
        }
        Request::Thread { who, event } => {
            let (detail, [a, b, c]) = event.words();
            Words { kind: THREAD, detail, target: who.0, a, b, c, ..Words::default() }
        }
        Request::Start { who, function, argument, thread } => {
            Words { kind: START, target: who.0, a: function, b: argument, c: thread.0, ..Words::default() }
        }
        Request::Build { who, build } => Words { kind: BUILD, target: who.0, a: build, ..Words::default() },
        Request::Stop => Words { kind: STOP, ..Words::default() },
        Request::Heap { who, call, arguments: [a, b, c] } => {
            Words { kind: HEAP, detail: call, target: who.0, a, b, c, ..Words::default() }
        }
        Request::Touched { who, start, end } => {
            Words { kind: TOUCHED, target: who.0, a: u64::from(start), b: u64::from(end), ..Words::default() }
        }
    }
}

/// Takes a message apart; `None` if it is none of ours.
pub fn parse(message: &[u8]) -> Option<Packet<'_>> {
    let (header, contents) = message.split_first_chunk::<HEADER_BYTES>()?;
    let words = Words::parse(header);
    let who = ProcessorId(words.target);
    let (detail, all) = (words.detail, [words.a, words.b, words.c]);
    let request = |request| Packet::Request { request, along: contents };
    Some(match words.kind {
        LETTER => {
            let (unit, msg, flags) = (words.target, (words.detail, words.a), words.flags);
            Packet::Letter(Letter { unit, msg, flags, contents })
        }
        JOINED => Packet::Joined(contents),
        OBJECT => request(Request::Object { who, event: Event::of_words(detail, all)? }),
        MIGRATORY => {
            let message = migratory::Message::of_words(detail, words.b)?;
            request(Request::Migratory { mutex: words.a, message })
        }
        THREAD => request(Request::Thread { who, event: threads::Event::of_words(detail, all)? }),
        START => {
            let thread = threads::Handle(words.c);
            request(Request::Start { who, function: words.a, argument: words.b, thread })
        }
        BUILD => request(Request::Build { who, build: words.a }),
        STOP => request(Request::Stop),
        HEAP => request(Request::Heap { who, call: detail, arguments: all }),
        TOUCHED => {
            request(Request::Touched { who, start: u32::try_from(words.a).ok()?, end: u32::try_from(words.b).ok()? })
        }
        REPLY => {
            let mailbox = if words.detail == 0 { Mailbox::Answer } else { Mailbox::Signal };
            let reply = Reply { mailbox, status: words.flags, value: words.a, extra: words.b };
            Packet::Reply { who, reply, about: words.c, contents }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(request: Request) {
        let bytes = request_words(request).bytes();
        match parse(&bytes) {
            Some(Packet::Request { request: back, .. }) => assert_eq!(back, request),
            Some(Packet::Letter(_) | Packet::Joined(_) | Packet::Reply { .. }) | None => {
                panic!("{request:?} came back as another")
            }
        }
    }

    #[test]
    fn every_request_survives_the_wire() {
        let who = ProcessorId(77);
        let object = 0x2000_0000_1238;
        for event in [
            Event::Lock { mutex: object, who },
            Event::TryLock { mutex: object, who },
            Event::Unlock { mutex: object, who },
            Event::Arrive { barrier: object, count: 9, who, weight: 3 },
            Event::SetFlag { flag: object, value: 4 },
            Event::WaitFlag { flag: object, value: u32::MAX, who },
            Event::ReadFlag { flag: object, who },
            Event::ResetFlag { flag: object },
            Event::Enqueue { condition: object, who },
            Event::Signal { condition: object },
            Event::Broadcast { condition: object },
            Event::Leave { condition: object, who },
            Event::ReadLock { rwlock: object, who, again: true },
            Event::TryReadLock { rwlock: object, who, again: false },
            Event::WriteLock { rwlock: object, who },
            Event::TryWriteLock { rwlock: object, who },
            Event::RwUnlock { rwlock: object, who },
        ] {
            there_and_back(Request::Object { who, event });
        }
        for trier in [None, Some(ProcessorId(0)), Some(who)] {
            for message in [
                migratory::Message::Ask { node: NodeId(63), trier },
                migratory::Message::Forward { node: NodeId(0), trier },
                migratory::Message::Own { trier },
            ] {
                there_and_back(Request::Migratory { mutex: object, message });
            }
        }
        for event in [
            threads::Event::Begin { who },
            threads::Event::Create { on: None, by: who, function: 5, argument: u64::MAX },
            threads::Event::Create { on: Some(ProcessorId(3)), by: who, function: 5, argument: 6 },
            threads::Event::Finished { who, result: 8 },
            threads::Event::Join { thread: threads::Handle(1 << 40 | 3), by: who },
            threads::Event::Spawn { near: None, by: who, function: 1 << 63, argument: 9 },
            threads::Event::Spawn { near: Some(0), by: who, function: 5, argument: 9 },
            threads::Event::Detach { thread: threads::Handle(1 << 40 | 3), by: who },
            threads::Event::Quiet { by: who },
        ] {
            there_and_back(Request::Thread { who, event });
        }
        there_and_back(Request::Start { who, function: 1, argument: 2, thread: threads::Handle(3 << 32 | 77) });
        there_and_back(Request::Build { who, build: u64::MAX });
        there_and_back(Request::Stop);
        there_and_back(Request::Heap { who, call: 3, arguments: [1, 2, 3] });
        there_and_back(Request::Touched { who, start: 5, end: u32::MAX });
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        assert!(parse(&[]).is_none());
        assert!(parse(&[0; HEADER_BYTES]).is_none());
        assert!(parse(&[255; 64]).is_none());
    }

    #[test]
    fn an_answer_says_what_it_is_about() {
        let sent = Reply { mailbox: Mailbox::Signal, status: 7, value: u64::MAX, extra: 3 };
        let bytes = reply_words(ProcessorId(9), sent, 0x2000_0000_0040).bytes();
        let Some(Packet::Reply { who, reply, about, contents: [] }) = parse(&bytes) else { panic!("no answer") };
        assert_eq!((who, reply, about), (ProcessorId(9), sent, 0x2000_0000_0040));
    }

    #[test]
    fn a_letter_survives_the_wire_with_what_follows_it() {
        let sent = Letter { unit: u32::MAX, msg: (200, 1 << 63), flags: 513, contents: &[1, 2] };
        let words = Words { kind: LETTER, detail: 200, flags: 513, target: u32::MAX, a: 1 << 63, ..Words::default() };
        let mut bytes = words.bytes().to_vec();
        bytes.extend(sent.contents);
        assert!(matches!(parse(&bytes), Some(Packet::Letter(letter)) if letter == sent));
    }
}
