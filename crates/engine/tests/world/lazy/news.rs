//! What goes along with synchronization: vector times, and the intervals that their receiver lacks. A request tells what its sender's node
//! knows. The manager keeps it by carrier, if the request releases. An answer tells what the carrier's releasers knew.

use finespun_protocol::tmk::raise;
use finespun_sync::Event;
use finespun_types::NodeId;

use super::Lazy;
use super::node::Interval;
use crate::bugs::Bug;
use crate::job::Job;
use crate::objects::{HEAP, Request, THREADS, address};
use crate::processor::Doing;
use crate::program::ALL;

/// A time is told, and not the intervals in it.
pub const CARRIED: &str = "a node that is told a time is told its intervals";

/// A time, and the intervals that its receiver lacks.
pub struct Told {
    about: u64,
    time: Vec<u32>,
    news: Vec<(usize, Interval)>,
}

impl Told {
    pub fn bytes(&self) -> usize {
        let words: usize = self.news.iter().map(|(_, interval)| 4 + interval.units.len()).sum();
        4 * (self.time.len() + words)
    }
}

/// By what a request releases, if it does.
fn released(request: &Request) -> Option<u64> {
    match request {
        Request::Object(event) => event.releases().then(|| event.object()),
        Request::Thread(event) => event.releases().then_some(THREADS),
        Request::Free { .. } => Some(HEAP),
        Request::Allocate { .. } | Request::Migratory(..) => None,
    }
}

impl Job<'_, Lazy> {
    /// Where a manager keeps what a carrier's releasers knew. Objects share places, but for the barrier of all, whose time has a wish.
    fn place_of(&self, about: u64) -> u64 {
        match about {
            HEAP | THREADS => about,
            object if object == address(ALL) => object,
            object => 8 + object / 64 % self.setting.places,
        }
    }

    fn is_message(&self, from: usize, to: usize) -> bool {
        !self.direct() && from != to
    }

    pub fn tell_manager(&mut self, who: usize, manager: usize, request: &Request) -> Option<Told> {
        let (node, about) = (self.node_of(who), released(request));
        let wished = about == Some(address(ALL)) && self.random.once_in(self.setting.wishes_in);
        let (is_message, own_only) = (self.is_message(node, manager), self.has(Bug::OwnNewsOnly));
        let at = &mut self.engine.nodes[node];
        let mut time = at.seen.clone();
        if own_only {
            time.iter_mut().enumerate().filter(|(writer, _)| *writer != node).for_each(|(_, time)| *time = 0);
        }
        time.push(if wished { at.collections + 1 } else { 0 });
        // A request that only asks says what its sender's node need not be told.
        let news = if is_message && about.is_some() { at.news(manager, &time) } else { Vec::new() };
        Some(Told { about: about.unwrap_or_default(), time, news })
    }

    pub fn keep_told(&mut self, who: usize, manager: usize, request: &Request, Told { about, time, news }: Told) {
        let from = self.node_of(who);
        let releases = released(request).is_some();
        if self.is_message(from, manager) {
            if releases {
                self.hear(from, manager, &time, news);
            } else if self.has(Bug::AskTakenForNews) {
                self.engine.nodes[manager].knowledge().heard(NodeId::of(from), &time);
            } else {
                self.engine.nodes[manager].knowledge().sent(NodeId::of(from), &time);
            }
        }
        if releases {
            self.release_in_oracle(who, request);
            let nodes = self.program.shape.nodes;
            let forgets = self.has(match about {
                HEAP => Bug::FreeUntold,
                THREADS => Bug::ThreadUntold,
                _ => Bug::ReleaseUntold,
            });
            if !forgets {
                raise(
                    self.engine.times.entry((manager, self.place_of(about))).or_insert_with(|| vec![0; nodes + 1]),
                    &time,
                );
            }
        }
    }

    fn hear(&mut self, from: usize, to: usize, time: &[u32], news: Vec<(usize, Interval)>) {
        if !self.engine.nodes[to].hear(from, time, news) {
            self.fail(CARRIED, format!("n{to} lacks intervals in {time:?} of n{from}"));
        }
    }

    /// The manager knows of the release now. A processor that stands for its node releases for all of it.
    fn release_in_oracle(&mut self, who: usize, request: &Request) {
        let node = self.node_of(who);
        let Some(carrier) = Self::carrier(who, self.awaiting_op(who)) else { return };
        match request {
            Request::Object(Event::Arrive { weight: 2.., .. }) => {
                let all = self.gathered[node].clone();
                all.into_iter().for_each(|who| self.oracle.release(who, carrier));
            }
            Request::Object(_) | Request::Thread(_) | Request::Free { .. } => self.oracle.release(who, carrier),
            Request::Allocate { .. } | Request::Migratory(..) => {}
        }
    }

    pub fn tell_acquirer(&mut self, manager: usize, who: usize, about: u64) -> Told {
        let (to, nodes) = (self.node_of(who), self.program.shape.nodes);
        let carrier = Self::carrier(who, self.awaiting_op(who));
        let processor = &self.processors[who];
        let begins = processor.interrupted.is_none() && matches!(processor.doing, Doing::Nothing);
        let carrier = if begins { Self::carrier(who, None) } else { carrier };
        self.processors[who].granted = carrier.map(|carrier| self.oracle.passed_on(carrier));
        let time =
            self.engine.times.get(&(manager, self.place_of(about))).cloned().unwrap_or_else(|| vec![0; nodes + 1]);
        let news = if self.is_message(manager, to) { self.engine.nodes[manager].news(to, &time) } else { Vec::new() };
        Told { about, time, news }
    }

    pub fn take_grant(&mut self, manager: usize, who: usize, Told { about, time, news }: Told) {
        let to = self.node_of(who);
        if self.is_message(manager, to) {
            self.hear(manager, to, &time, news);
        }
        let node = &mut self.engine.nodes[to];
        node.knowledge().grant(&time);
        if about == address(ALL) {
            raise(&mut node.at_barrier, &time);
        }
    }
}
