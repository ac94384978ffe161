//! A network between nodes: each pair has a channel with a delay, a jitter and a rate. What a node sends to another arrives in the order
//! sent and once. Messages of different pairs overtake each other.
//!
//! Until it *heals* some channels stand still for a while: what would arrive meanwhile arrives together afterwards.

use std::collections::VecDeque;

use crate::clock::Moment;
use crate::random::Random;

/// Bytes of a message beside its contents.
const HEADER_BYTES: usize = 48;

/// How the channels of a job are.
#[derive(Clone, Debug)]
pub struct Model {
    /// The mean of a message's way.
    pub delay: u64,
    /// So much more, or nothing, or between.
    pub jitter: u64,
    /// Nanoseconds a byte: one message leaves after the other.
    pub byte_ns_hundredths: u64,
    /// One channel in so many stands still now and then; 0: none.
    pub clogged_in: usize,
    /// From here on none stands still.
    pub healed: Moment,
    /// A wrong network: messages of a pair overtake each other.
    pub reorders: bool,
}

impl Model {
    /// One of several kinds: a fast and even one, a slow one, one with a jitter of many delays.
    pub fn random(random: &mut Random) -> Self {
        let delay = random.of(&[20, 300, 3_000, 30_000]);
        Self {
            delay,
            jitter: delay * random.of(&[0, 1, 10]),
            byte_ns_hundredths: random.of(&[0, 10, 80]),
            clogged_in: random.of(&[0, 2, 6]),
            healed: random.of(&[0, 30_000, 300_000]),
            reorders: false,
        }
    }
}

struct Channel<T> {
    packets: VecDeque<(Moment, T)>,
    /// The last bit of the last message leaves then.
    busy: Moment,
    /// The last message arrives then.
    last: Moment,
    /// It stands still from here to there.
    clog: (Moment, Moment),
}

/// All channels.
pub struct Network<T> {
    model: Model,
    nodes: usize,
    channels: Vec<Channel<T>>,
}

impl<T> Network<T> {
    pub fn new(model: Model, nodes: usize, random: &mut Random) -> Self {
        let mut clog = || match model.clogged_in {
            0 => (0, 0),
            times if random.once_in(times) => {
                let from = random.below(model.healed as usize + 1) as u64;
                (from, from + random.below((model.healed - from) as usize + 1) as u64)
            }
            _ => (0, 0),
        };
        let mut channel = |_| Channel { packets: VecDeque::new(), busy: 0, last: 0, clog: clog() };
        let channels = (0..nodes * nodes).map(&mut channel).collect();
        Self { model, nodes, channels }
    }

    fn channel(&mut self, from: usize, to: usize) -> &mut Channel<T> {
        &mut self.channels[from * self.nodes + to]
    }

    /// Sends; tells when it arrives.
    pub fn send(
        &mut self,
        now: Moment,
        (from, to): (usize, usize),
        bytes: usize,
        packet: T,
        random: &mut Random,
    ) -> Moment {
        let Model { delay, jitter, byte_ns_hundredths, reorders, .. } = self.model;
        let takes = (HEADER_BYTES + bytes) as u64 * byte_ns_hundredths / 100;
        let way = delay / 2 + random.below(delay as usize + 1) as u64 + random.below(jitter as usize + 1) as u64;
        let channel = self.channel(from, to);
        channel.busy = channel.busy.max(now) + takes;
        let mut arrives = channel.busy + way;
        if (channel.clog.0..channel.clog.1).contains(&arrives) {
            arrives = channel.clog.1;
        }
        if !reorders {
            arrives = arrives.max(channel.last);
        }
        channel.last = arrives;
        let place = channel.packets.partition_point(|(at, _)| *at <= arrives);
        channel.packets.insert(place, (arrives, packet));
        arrives
    }

    /// When the next message of the channel arrives.
    pub fn next(&self, from: usize, to: usize) -> Option<Moment> {
        self.channels[from * self.nodes + to].packets.front().map(|(at, _)| *at)
    }

    /// What the next message says, for who must take a lock first.
    pub fn peek(&self, from: usize, to: usize) -> Option<&T> {
        self.channels[from * self.nodes + to].packets.front().map(|(_, packet)| packet)
    }

    pub fn take(&mut self, from: usize, to: usize) -> Option<T> {
        self.channel(from, to).packets.pop_front().map(|(_, packet)| packet)
    }

    pub fn is_empty(&self) -> bool {
        self.channels.iter().all(|channel| channel.packets.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Model =
        Model { delay: 100, jitter: 1_000, byte_ns_hundredths: 0, clogged_in: 0, healed: 0, reorders: false };

    fn network(model: Model) -> (Network<u32>, Random) {
        let mut random = Random::new(7);
        (Network::new(model, 3, &mut random), random)
    }

    #[test]
    fn messages_of_a_pair_arrive_in_the_order_sent_and_those_of_two_pairs_overtake() {
        let (mut network, mut random) = network(EVEN);
        let mut overtaken = 0;
        for number in 0..100 {
            let first = network.send(number * 10, (0, 1), 0, number as u32, &mut random);
            let later = network.send(number * 10 + 1, (2, 1), 0, 0, &mut random);
            overtaken += u32::from(later < first);
        }
        let received: Vec<_> = std::iter::from_fn(|| Some((network.next(0, 1)?, network.take(0, 1)?))).collect();
        assert!(received.is_sorted() && received.iter().map(|(_, number)| *number).eq(0..100));
        assert!(overtaken > 0);
    }

    #[test]
    fn long_messages_leave_one_after_the_other() {
        let (mut network, mut random) = network(Model { jitter: 0, byte_ns_hundredths: 100, ..EVEN });
        let last = (0..10).map(|number| network.send(0, (0, 1), 952, number, &mut random)).max();
        assert!(last.is_some_and(|last| (10_050..=10_150).contains(&last)), "{last:?}: 10 times 1,000 bytes");
    }

    #[test]
    fn a_channel_that_stands_still_goes_on_before_the_network_is_healed() {
        let model = Model { jitter: 0, clogged_in: 1, healed: 50_000, ..EVEN };
        let mut stood_still = 0;
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut network = Network::new(model.clone(), 2, &mut random);
            let arrivals: Vec<_> = (0..500).map(|at| network.send(at * 100, (0, 1), 0, 0, &mut random)).collect();
            let longest = arrivals.iter().zip(0..).map(|(arrives, at)| arrives - at * 100).max();
            stood_still += u32::from(longest > Some(1_000));
            assert!(arrivals.last().is_some_and(|last| *last <= 50_000 + 150));
        }
        assert!(stood_still > 20, "{stood_still} of 50");
    }
}
