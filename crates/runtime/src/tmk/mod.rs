//! Lazy release consistency, live: presents events to `finespun_protocol::tmk` and performs the actions.
//!
//! ```text
//!   faults  --> mod: a node's copy; requests       --> other nodes' memory, or messages (wire)
//!   program --> steps: end of an interval, acquire
//!   objects, threads, memory, wire --> news: what travels with locks, barriers, threads and the heap
//!   barrier --> collect
//! ```
//!
//! A node has one view, so a handler needs one lock, that of the unit at its node, and asks others only after it has given
//! it back: the copy's mode says meanwhile that an answer is due. Where nodes reach each other's memory, the faulting thread runs
//! the writers' handlers one after the other, each under the lock of the unit there, and then applies their diffs straight
//! from their memory: a diff that is kept does not change before it is collected, and nobody is in a fault then.
//! Otherwise diffs that come are kept in this node's memory until the last answer is there.

pub mod collect;
mod letters;
pub mod news;
pub mod steps;
mod wish;

use std::sync::atomic::Ordering;

use finespun_diff::DiffBuffer;
use finespun_protocol::Family;
use finespun_protocol::tmk::{Action, Event, Outcome, Unit};
use finespun_types::{Access, Counter, NODES_MAX, NodeId, UNIT_BYTES, UnitId, ViewId};

use crate::cluster::Cluster;
use crate::mappings::{Change, Wanted};
use crate::nest::early::Tried;
use crate::sys::frames::{self, Page};
use crate::sys::segment::Locked;
use crate::sys::tmk::Store;
use crate::wire::Letter;
use crate::{meter, misuse, wait};
use letters::{Lazy, count_message, no_room};

/// The node's only view.
const VIEW: ViewId = ViewId(0);

/// Bytes of diffs in one message: any one diff fits.
const ANSWER_BYTES_MAX: usize = 8192;
/// Index, stamp, length before each diff in a message.
const DIFF_HEADER_BYTES: usize = 12;

/// Does the job run this protocol?
pub fn runs(cluster: &Cluster) -> bool {
    cluster.shape.family == Family::Tmk
}

/// What came with an event.
#[derive(Clone, Copy)]
enum With<'a> {
    Nothing,
    /// A page.
    Page(Page),
    /// By writer: its first diff to apply and its last interval, in its own memory; 0: none.
    Diffs(&'a [(u32, u32)]),
}

/// What is to be done after the unit's lock was given back.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// Ask for the copy.
    AskBase(NodeId),
    /// Ask each writer for the diffs that [`Hands::wants`] says.
    AskDiffs,
    /// The asker, who runs this handler itself, finds the diffs from this one on, up to this interval.
    Diffs(u32, u32),
    /// The asker finds the page in its buffer.
    Base,
    /// The asker is told another node, and a stamp.
    NoBase(NodeId, u32),
}

/// A page on its way from one node's memory to another's.
#[repr(align(64))]
struct Buffer([u8; UNIT_BYTES]);

/// What a handler may use that its caller gives.
struct Hands<'a> {
    with: With<'a>,
    change: Change,
    /// Filled where the caller is the asker.
    page: Option<&'a mut Buffer>,
    applied: [u32; NODES_MAX],
    /// Filled by the asker's own handler, by writer: after, up to; zeros: nothing.
    wants: [(u32, u32); NODES_MAX],
    /// Filled by the asker's own handler: is it left to the caller to open or close the page?
    is_wanted: bool,
}

impl<'a> Hands<'a> {
    const fn of(with: With<'a>, change: Change) -> Self {
        Self { with, change, page: None, applied: [0; NODES_MAX], wants: [(0, 0); NODES_MAX], is_wanted: false }
    }
}

/// What this view may do with a unit, by the books.
pub fn access(cluster: &Cluster, unit: UnitId) -> Access {
    let mut locked = cluster.mine().lock(unit);
    access_of(&locked.tmk().0.unit)
}

const fn access_of(copy: &Unit) -> Access {
    match (copy.writable, copy.mapped) {
        (true, _) => Access::Write,
        (false, true) => Access::Read,
        (false, false) => Access::None,
    }
}

/// The node that has the unit's last interval, as this node knows it: the nearest to a home that there is.
pub fn last_writer(cluster: &Cluster, unit: UnitId) -> Option<NodeId> {
    cluster.mine().lock(unit).tmk().0.unit.last()
}

/// Has a store to the unit reached this node, or has the node touched it?
pub fn has_heard_of(cluster: &Cluster, unit: UnitId) -> bool {
    cluster.mine().lock(unit).tmk().0.unit != Unit::default()
}

/// A load or store of this process's view faulted: returns when it may be repeated.
pub fn fault(cluster: &Cluster, unit: UnitId, write: bool) {
    until_done(cluster, unit, Event::Fault { write });
}

/// Presents a load that may not have faulted yet, asking other nodes as it says; the page is left to the caller to be opened.
pub fn try_ahead(cluster: &Cluster, unit: UnitId) -> Tried {
    loop {
        let mut hands = Hands::of(With::Nothing, Change::Together);
        let (outcome, then) = present(cluster, cluster.me, unit, Event::Fault { write: false }, &mut hands);
        match outcome {
            Outcome::Done if hands.is_wanted => return Tried::Wanted,
            Outcome::Done => return Tried::WasOpen,
            Outcome::Wait if ask(cluster, unit, then, &hands) => {}
            Outcome::Wait => return Tried::Asked,
        }
    }
}

/// Asks whom the copy's table says: true if the answer is there already.
fn ask(cluster: &Cluster, unit: UnitId, then: Then, hands: &Hands<'_>) -> bool {
    match then {
        Then::AskBase(to) => ask_base(cluster, unit, to),
        Then::AskDiffs => ask_diffs(cluster, unit, &hands.wants[..cluster.shape.nodes]),
        Then::Nothing | Then::Diffs(..) | Then::Base | Then::NoBase(..) => false,
    }
}

/// Presents an event again and again until it is done, asking other nodes as it says.
fn until_done(cluster: &Cluster, unit: UnitId, event: Event<'_>) {
    loop {
        let last = wait::last_event(cluster);
        let mut hands = Hands::of(With::Nothing, Change::Grow);
        let (outcome, then) = {
            // Not in the middle of another thread's acquire: a diff that is asked for must come with all that happened before, else
            // those would be applied after it. Nobody who holds this waits for a fault.
            let _whole = cluster.mine().view(VIEW).acquiring.guard();
            present(cluster, cluster.me, unit, event, &mut hands)
        };
        if outcome == Outcome::Done {
            return cluster.flush_messages();
        }
        if !ask(cluster, unit, then, &hands) {
            cluster.flush_messages();
            wait::for_event(cluster, last);
        }
    }
}

fn is_direct(cluster: &Cluster) -> bool {
    cluster.mesh.is_none()
}

/// True if the answer is there already.
fn ask_base(cluster: &Cluster, unit: UnitId, to: NodeId) -> bool {
    if !is_direct(cluster) {
        send(cluster, to, unit, Lazy::AskBase, &[]);
        return false;
    }
    let mut buffer = Buffer([0; UNIT_BYTES]);
    let mut hands = Hands { page: Some(&mut buffer), ..Hands::of(With::Nothing, Change::Shrink) };
    let (_, then) = present(cluster, to, unit, Event::AskBase { from: cluster.me }, &mut hands);
    let applied = hands.applied;
    count_message(cluster, 0);
    match then {
        Then::NoBase(last, stamp) => {
            count_message(cluster, 0);
            take(cluster, unit, Event::NoBase { last, stamp }, With::Nothing);
        }
        Then::Nothing | Then::AskBase(_) | Then::AskDiffs | Then::Diffs(..) | Then::Base => {
            let applied = &applied[..cluster.shape.nodes];
            count_message(cluster, UNIT_BYTES + size_of_val(applied));
            take(cluster, unit, Event::Base { applied }, With::Page(Page::at(buffer.0.as_ptr())));
        }
    }
    true
}

/// Likewise.
fn ask_diffs(cluster: &Cluster, unit: UnitId, wants: &[(u32, u32)]) -> bool {
    let wanted = || wants.iter().enumerate().filter(|(_, (_, upto))| *upto > 0);
    if !is_direct(cluster) {
        for (writer, &(after, upto)) in wanted() {
            send(cluster, NodeId(writer as u8), unit, Lazy::AskDiffs { after, upto }, &[]);
        }
        return false;
    }
    let mut found = [(0, 0); NODES_MAX];
    for (writer, &(after, upto)) in wanted() {
        let event = Event::AskDiffs { from: cluster.me, after, upto };
        let hands = &mut Hands::of(With::Nothing, Change::Shrink);
        let (_, then) = present(cluster, NodeId(writer as u8), unit, event, hands);
        if let Then::Diffs(first, last) = then {
            found[writer] = (first, last);
        }
        count_message(cluster, 0);
        count_message(cluster, 0);
    }
    for (writer, _) in wanted() {
        let event = Event::Diffs { from: NodeId(writer as u8), upto: found[writer].1 };
        take(cluster, unit, event, With::Diffs(&found[..wants.len()]));
    }
    true
}

/// An answer for this node's copy.
fn take(cluster: &Cluster, unit: UnitId, event: Event<'_>, with: With<'_>) {
    present(cluster, cluster.me, unit, event, &mut Hands::of(with, Change::Shrink));
}

/// Runs the table of a node's copy and performs what it says.
fn present(cluster: &Cluster, node: NodeId, unit: UnitId, event: Event<'_>, hands: &mut Hands<'_>) -> (Outcome, Then) {
    let mut locked = cluster.at(node).lock(unit);
    let (copy, writers) = locked.tmk();
    let before = access_of(&copy.unit);
    let step = match copy.unit.on(node, writers, event) {
        Ok(step) => step,
        Err(impossible) => misuse::bug(cluster, unit, node, &impossible),
    };
    let wanted = Wanted::new(hands.change, before);
    let mut at = At { cluster, node, unit, locked, wanted, hands };
    let mut then = Then::Nothing;
    for &action in step.actions.as_slice() {
        let next = at.act(action);
        if !matches!(next, Then::Nothing) {
            then = next;
        }
    }
    at.hands.is_wanted = at.wanted.is_left();
    (step.outcome, then)
}

/// A unit at a node, locked.
struct At<'a, 'h, 'w> {
    cluster: &'a Cluster,
    node: NodeId,
    unit: UnitId,
    locked: Locked<'a>,
    wanted: Wanted,
    hands: &'h mut Hands<'w>,
}

impl At<'_, '_, '_> {
    fn act(&mut self, action: Action) -> Then {
        match action {
            Action::AskBase(to) => return Then::AskBase(to),
            Action::AskDiffs => return self.wants(),
            Action::SendDiffs { to, after, upto } => return self.send_diffs(to, after, upto),
            Action::SendBase { to, twin } => return self.send_base(to, twin),
            Action::SendNoBase { to, last, stamp } => {
                if is_direct(self.cluster) {
                    return Then::NoBase(last, stamp);
                }
                send(self.cluster, to, self.unit, Lazy::NoBase { last, stamp }, &[]);
            }
            Action::MakeDiff { index, stamp, refresh } => self.make_diff(index, stamp, refresh),
            Action::MakeTwin => {
                meter::count(self.cluster, Counter::Twins, 1);
                let twin = self.locked.new_twin();
                frames::snapshot(self.locked.frame(), twin);
            }
            Action::DropTwin => self.locked.drop_twin(),
            Action::Install => {
                let With::Page(page) = self.hands.with else { self.malformed() };
                meter::count(self.cluster, Counter::PageTransfers, 1);
                frames::install(page, self.locked.frame());
            }
            Action::Apply { twin } => match self.hands.with {
                With::Diffs(found) => self.apply_found(found, twin),
                With::Nothing | With::Page(_) => self.apply_came(twin),
            },
            Action::Protect(access) => {
                assert!(self.node == self.cluster.me, "nobody can change another process's mapping");
                self.wanted.want(self.cluster, self.unit, access, self.locked.frame());
            }
            Action::ListDirty => self.cluster.at(self.node).list_dirty(VIEW, self.unit),
            Action::Wake => wait::wake_views(self.cluster, self.node),
        }
        Then::Nothing
    }

    fn malformed(&self) -> ! {
        misuse::malformed(self.cluster, self.unit, self.node)
    }

    fn wants(&mut self) -> Then {
        let (_, writers) = self.locked.tmk();
        for (want, seen) in self.hands.wants.iter_mut().zip(writers.iter()) {
            *want = Unit::lacks(seen).unwrap_or_default();
        }
        Then::AskDiffs
    }

    fn make_diff(&mut self, index: u32, stamp: u32, refresh: bool) {
        let mut buffer = DiffBuffer::new();
        let diff = frames::diff(self.locked.frame(), self.locked.twin(), refresh, &mut buffer);
        let segment = self.cluster.at(self.node);
        let kept = segment.keep_diff(Store::Kept, self.node, index, stamp, diff);
        let number = kept.unwrap_or_else(|full| no_room(self.cluster, full));
        let (copy, _) = self.locked.tmk();
        if copy.youngest > 0 {
            segment.diff(Store::Kept, copy.youngest).0.next.store(number, Ordering::Relaxed);
            segment.diff(Store::Kept, number).0.before.store(copy.youngest, Ordering::Relaxed);
        } else {
            copy.oldest = number;
        }
        copy.youngest = number;
        meter::count(self.cluster, Counter::Diffs, 1);
        meter::count(self.cluster, Counter::DiffBytes, diff.len() as u64);
    }

    /// The first of the node's own diffs after an interval, and the last interval of those that reach another.
    fn own_diffs(&mut self, after: u32, upto: u32) -> (u32, u32) {
        let segment = self.cluster.at(self.node);
        let mut first = self.locked.tmk().0.youngest;
        let mut last = first;
        while first > 0 {
            let (head, _) = segment.diff(Store::Kept, first);
            if head.index >= upto {
                last = first;
            }
            let before = head.before.load(Ordering::Relaxed);
            if before == 0 || segment.diff(Store::Kept, before).0.index <= after {
                break;
            }
            first = before;
        }
        if first == 0 || segment.diff(Store::Kept, last).0.index < upto {
            self.malformed();
        }
        (first, segment.diff(Store::Kept, last).0.index)
    }

    fn send_diffs(&mut self, to: NodeId, after: u32, upto: u32) -> Then {
        let (first, last) = self.own_diffs(after, upto);
        if is_direct(self.cluster) {
            return Then::Diffs(first, last);
        }
        let segment = self.cluster.at(self.node);
        let mut buffer = [0; ANSWER_BYTES_MAX];
        let (mut filled, mut next) = (0, first);
        loop {
            let (head, bytes) = segment.diff(Store::Kept, next);
            if filled + DIFF_HEADER_BYTES + bytes.len() > ANSWER_BYTES_MAX {
                send(self.cluster, to, self.unit, Lazy::Diffs { upto: 0 }, &buffer[..filled]);
                filled = 0;
            }
            for word in [head.index, head.stamp, bytes.len() as u32] {
                buffer[filled..filled + 4].copy_from_slice(&word.to_le_bytes());
                filled += 4;
            }
            buffer[filled..filled + bytes.len()].copy_from_slice(bytes);
            filled += bytes.len();
            if head.index == last {
                break;
            }
            next = head.next.load(Ordering::Relaxed);
        }
        send(self.cluster, to, self.unit, Lazy::Diffs { upto: last }, &buffer[..filled]);
        Then::Nothing
    }

    fn send_base(&mut self, to: NodeId, twin: bool) -> Then {
        let nodes = self.cluster.shape.nodes;
        let mut applied = [0; NODES_MAX];
        for (applied, seen) in applied.iter_mut().zip(self.locked.tmk().1.iter()) {
            *applied = seen.applied;
        }
        let page = Page::at(if twin { self.locked.twin() } else { self.locked.frame() });
        if let Some(buffer) = &mut self.hands.page {
            frames::install(page, buffer.0.as_mut_ptr());
            self.hands.applied = applied;
            return Then::Base;
        }
        let mut words = [0; 4 * NODES_MAX];
        for (bytes, applied) in words.as_chunks_mut::<4>().0.iter_mut().zip(applied) {
            *bytes = applied.to_le_bytes();
        }
        send_two(self.cluster, to, self.unit, Lazy::Base, page.bytes(), &words[..4 * nodes]);
        Then::Nothing
    }

    /// Straight from the writers' memory: of all that are left, always the diff with the lowest stamp.
    fn apply_found(&mut self, found: &[(u32, u32)], twin: bool) {
        let mut next = [0; NODES_MAX];
        for (next, (first, _)) in next.iter_mut().zip(found) {
            *next = *first;
        }
        loop {
            let left = (0..found.len()).filter(|&writer| next[writer] > 0);
            let of = |writer: usize| self.cluster.at(NodeId(writer as u8)).diff(Store::Kept, next[writer]);
            let Some(writer) = left.min_by_key(|&writer| (of(writer).0.stamp, writer)) else { return };
            let (head, bytes) = of(writer);
            meter::count(self.cluster, Counter::Bytes, (DIFF_HEADER_BYTES + bytes.len()) as u64);
            self.apply(bytes, twin);
            next[writer] = if head.index == found[writer].1 { 0 } else { head.next.load(Ordering::Relaxed) };
        }
    }

    /// Those that came by messages, in order already.
    fn apply_came(&mut self, twin: bool) {
        let segment = self.cluster.at(self.node);
        let mut next = std::mem::take(&mut self.locked.tmk().0.came);
        let mut count = 0;
        while next > 0 {
            let (head, bytes) = segment.diff(Store::Came, next);
            self.apply(bytes, twin);
            next = head.next.load(Ordering::Relaxed);
            count += 1;
        }
        segment.forget_diffs(Store::Came, count);
    }

    fn apply(&mut self, diff: &[u8], twin: bool) {
        meter::count(self.cluster, Counter::DiffsFetched, 1);
        let to_frame = frames::apply(diff, self.locked.frame());
        let to_twin = if twin { frames::apply(diff, self.locked.twin()) } else { Ok(()) };
        if to_frame.is_err() || to_twin.is_err() {
            self.malformed();
        }
    }
}

fn send(cluster: &Cluster, to: NodeId, unit: UnitId, msg: Lazy, contents: &[u8]) {
    send_two(cluster, to, unit, msg, contents, &[]);
}

fn send_two(cluster: &Cluster, to: NodeId, unit: UnitId, msg: Lazy, contents: &[u8], more: &[u8]) {
    count_message(cluster, contents.len() + more.len());
    letters::send(cluster, to, unit.0, msg, [contents, more]);
}

/// A message of another node came.
pub fn receive(cluster: &Cluster, from: NodeId, letter: Letter<'_>) {
    let Letter { unit, msg: (number, word), contents, .. } = letter;
    let Some(msg) = Lazy::of_words(number, word) else { misuse::malformed_message(cluster, from) };
    if msg == Lazy::News {
        return news::log(cluster, from, contents);
    }
    let unit = UnitId(unit);
    if unit.0 as usize >= cluster.shape.pages {
        misuse::malformed_message(cluster, from);
    }
    match msg {
        Lazy::AskDiffs { after, upto } => take(cluster, unit, Event::AskDiffs { from, after, upto }, With::Nothing),
        Lazy::AskBase => take(cluster, unit, Event::AskBase { from }, With::Nothing),
        Lazy::NoBase { last, stamp } => take(cluster, unit, Event::NoBase { last, stamp }, With::Nothing),
        Lazy::Base => {
            let nodes = cluster.shape.nodes;
            let Some((page, words)) = contents.split_at_checked(UNIT_BYTES) else {
                misuse::malformed(cluster, unit, cluster.me)
            };
            let (Some(page), (words, [])) = (Page::in_message(page), words.as_chunks::<4>()) else {
                misuse::malformed(cluster, unit, cluster.me)
            };
            let mut applied = [0; NODES_MAX];
            applied.iter_mut().zip(words).for_each(|(applied, bytes)| *applied = u32::from_le_bytes(*bytes));
            take(cluster, unit, Event::Base { applied: &applied[..nodes] }, With::Page(page));
        }
        Lazy::Diffs { upto } => {
            keep_answer(cluster, from, unit, contents);
            if upto > 0 {
                take(cluster, unit, Event::Diffs { from, upto }, With::Nothing);
            }
        }
        Lazy::News => {}
    }
}

/// Keeps diffs that came until the last answer is there, sorted in.
fn keep_answer(cluster: &Cluster, from: NodeId, unit: UnitId, mut contents: &[u8]) {
    let segment = cluster.mine();
    let mut locked = segment.lock(unit);
    while let Some((header, rest)) = contents.split_first_chunk::<DIFF_HEADER_BYTES>() {
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (index, stamp, len) = (word(0), word(4), word(8) as usize);
        let Some((bytes, rest)) = rest.split_at_checked(len) else { misuse::malformed(cluster, unit, cluster.me) };
        contents = rest;
        let kept = segment.keep_diff(Store::Came, from, index, stamp, bytes);
        let number = kept.unwrap_or_else(|full| no_room(cluster, full));
        let (new, _) = segment.diff(Store::Came, number);
        let (copy, _) = locked.tmk();
        let (mut before, mut next) = (0, copy.came);
        while next > 0 {
            let (head, _) = segment.diff(Store::Came, next);
            if (head.stamp, head.from) > (stamp, new.from) {
                break;
            }
            (before, next) = (next, head.next.load(Ordering::Relaxed));
        }
        new.next.store(next, Ordering::Relaxed);
        match before {
            0 => copy.came = number,
            before => segment.diff(Store::Came, before).0.next.store(number, Ordering::Relaxed),
        }
    }
}
