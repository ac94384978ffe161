//! Times as ranks: what the tables compare of them is their order.

use finespun_protocol::cashmere::{Mode, Time, Unit};

use crate::model::{Copy, Doing, Processor};

/// Makes states equal that differ in times only. `unit`: where a protocol's state has Cashmere's.
pub fn make_canonical<U>(copies: &mut [Copy<U>], unit: impl Fn(&mut U) -> &mut Unit, processors: &mut [Processor]) {
    for (number, copy) in copies.iter_mut().enumerate() {
        rank_fetches(unit(&mut copy.unit), number, processors);
    }
    rank_flushes(copies, unit, processors);
}

/// `updated`, `asked` and `noticed_at` are compared with each other and with the faults of the unit.
fn rank_fetches(unit: &mut Unit, number: usize, processors: &mut [Processor]) {
    match unit.mode {
        Mode::Fetching => {}
        Mode::Shared | Mode::Upgrading | Mode::Exclusive => unit.asked = 0,
        Mode::Untouched | Mode::AskingHome | Mode::NoCopy => {
            (unit.asked, unit.updated, unit.noticed_at) = (0, 0, 0);
        }
    }
    let mut times = Ranks::default();
    let faults = |processor: &&mut Processor| matches!(processor.doing, Doing::Fault { unit, .. } if usize::from(unit) == number);
    for processor in processors.iter_mut().filter(faults) {
        times.add(processor.since);
    }
    times.add(unit.updated);
    times.add(unit.noticed_at);
    if unit.mode == Mode::Fetching {
        times.add(unit.asked);
    }
    times.sort();
    for processor in processors.iter_mut().filter(faults) {
        times.rank(&mut processor.since);
    }
    for time in [&mut unit.updated, &mut unit.asked, &mut unit.noticed_at] {
        times.rank(time);
    }
}

/// `flushed` is compared with the releases of the node.
fn rank_flushes<U>(copies: &mut [Copy<U>], unit: impl Fn(&mut U) -> &mut Unit, processors: &mut [Processor]) {
    let counts = |since: &&mut Time| **since != Time::MAX;
    let any = processors.iter_mut().filter_map(Processor::release_since).any(|since| counts(&since));
    let mut times = Ranks::default();
    for since in processors.iter_mut().filter_map(Processor::release_since).filter(counts) {
        times.add(*since);
    }
    for copy in copies.iter_mut() {
        let flushed = &mut unit(&mut copy.unit).flushed;
        *flushed = if any { *flushed } else { 0 };
        times.add(*flushed);
    }
    times.sort();
    for since in processors.iter_mut().filter_map(Processor::release_since).filter(counts) {
        times.rank(since);
    }
    for copy in copies {
        times.rank(&mut unit(&mut copy.unit).flushed);
    }
}

/// A few times, to be replaced by their ranks.
#[derive(Default)]
struct Ranks {
    times: [Time; 24],
    len: usize,
}

impl Ranks {
    fn add(&mut self, time: Time) {
        if !self.times[..self.len].contains(&time) {
            self.times[self.len] = time;
            self.len += 1;
        }
    }

    fn sort(&mut self) {
        self.times[..self.len].sort_unstable();
    }

    fn rank(&self, time: &mut Time) {
        *time = self.times[..self.len].iter().take_while(|other| *other < time).count() as Time;
    }
}
