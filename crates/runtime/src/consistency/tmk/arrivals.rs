//! What other nodes ask and answer by messages.

use std::sync::atomic::Ordering;

use finespun_protocol::tmk::Event;
use finespun_types::{NODES_MAX, NodeId, PAGE_BYTES, UnitId};

use super::copy::{With, take};
use super::letters::{self, Lazy, no_room};
use super::news;
use crate::messages::wire::Letter;
use crate::node::cluster::Cluster;
use crate::node::misuse;
use crate::sys::frames::Page;
use crate::sys::tmk::Store;

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
            let Some((page, words)) = contents.split_at_checked(PAGE_BYTES) else {
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
    while !contents.is_empty() {
        let next = letters::next_diff(&mut contents);
        let Some((index, stamp, bytes)) = next else { misuse::malformed(cluster, unit, cluster.me) };
        let kept = segment.keep_diff(Store::Came, from, index, stamp, bytes);
        let number = kept.unwrap_or_else(|full| no_room(cluster, full));
        let (new, _) = segment.diff(Store::Came, number);
        let (copy, _) = locked.tmk();
        let (mut before, mut next) = (0, copy.came);
        while next > 0 {
            let (head, _) = segment.diff(Store::Came, next);
            if head.order() > new.order() {
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
