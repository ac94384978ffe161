//! What can happen next, and makes it happen: processors follow their scripts through faults, intervals and acquires; messages
//! arrive.

use finespun_engine::lazy::{Acquire, Release};
use finespun_protocol::tmk::{Event, Outcome};
use finespun_types::{Access, NodeId};

use super::bugs::Bug;
use super::driver::{Form, Run};
use super::world::{Ask, Doing, Interval, Letter, Times};
use crate::driver::Broken;
use crate::processor::Move;
use crate::program::{Op, Word};

pub use crate::processor::LOAD;

impl Run<'_> {
    /// Where a processor runs.
    pub(super) fn seat(&self, processor: usize) -> usize {
        processor / self.rules.program.shape.threads
    }

    pub(super) fn op(&self, processor: usize) -> Option<&Op> {
        self.script(processor).get(usize::from(self.world.processors[processor].next))
    }

    /// Has every processor done its script, and is nothing under way?
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let scripts = (0..self.world.processors.len()).all(|processor| self.op(processor).is_none());
        scripts && self.world.handlers.iter().all(Option::is_none) && self.world.channels.iter().all(Vec::is_empty)
    }

    /// Everything that can happen now.
    pub fn moves(&self, out: &mut Vec<Move>) {
        out.clear();
        for task in 0..self.world.handlers.len() {
            for choice in 0..self.choices(task) {
                out.push(Move { task: task as u16, choice: choice as u16 });
            }
        }
    }

    fn choices(&self, task: usize) -> usize {
        if self.world.handlers[task].is_some() {
            return 1;
        }
        match task.checked_sub(self.world.processors.len()) {
            None => self.processor_choices(task) + usize::from(self.takes_signal(task)),
            Some(channel) => {
                let waiting = &self.world.channels[channel];
                let to = channel % self.nodes();
                let free = |letter: &Letter| Self::unit_of(letter).is_none_or(|unit| self.is_free(to, unit));
                let first = waiting.first().map_or(0, |first| usize::from(free(&first.letter)));
                if self.has(Bug::UnorderedChannels) { first * waiting.len() } else { first }
            }
        }
    }

    fn processor_choices(&self, task: usize) -> usize {
        let processor = &self.world.processors[task];
        let seat = self.seat(task);
        let node = &self.world.nodes[seat];
        let free = |unit: u8| self.is_free(seat, unit);
        let mixed = self.has(Bug::AcquireDuringRelease);
        // What a fault asks for must be all that happened before: no half of an acquire.
        let whole = node.acquiring == 0 || self.has(Bug::FaultDuringAcquire);
        // Nor may it ask for what is just being forgotten.
        let whole = whole && (!self.holds_faults(seat) || self.has(Bug::FaultInCollection));
        let first_free = |left: u8| left == 0 || free(left.trailing_zeros() as u8);
        let able = match &processor.doing {
            Doing::Running => match self.op(task) {
                None => false,
                Some(&Op::Load(at, _)) => self.access(seat, at.unit) != Access::None || whole && free(at.unit as u8),
                Some(&Op::Store(at, _)) => self.access(seat, at.unit) == Access::Write || whole && free(at.unit as u8),
                Some(Op::Lock(_) | Op::Await(_)) => true,
                Some(Op::Unlock(_) | Op::Barrier | Op::Set(_)) => node.releasing == 0 && (node.acquiring == 0 || mixed),
                Some(Op::Either(places)) => return places.len(),
            },
            Doing::Fault { unit, .. } => !processor.asleep && whole && free(*unit),
            Doing::Closing { left, .. } => first_free(*left),
            Doing::Waiting => false,
            Doing::Granted => processor.meeting > 0 || node.acquiring == 0 && (node.releasing == 0 || mixed),
            Doing::Acquiring { left, .. } => left.first().is_none_or(|(unit, ..)| free(*unit)),
            Doing::Keeping { left } => !processor.asleep && first_free(*left),
            Doing::Collecting { left } => !processor.asleep && left.first().is_none_or(|(unit, ..)| free(*unit)),
        };
        usize::from(able)
    }

    /// Makes it happen.
    ///
    /// # Errors
    /// A sentence that does not hold.
    pub fn apply(&mut self, Move { task, choice }: Move) -> Result<(), Broken> {
        let (task, choice) = (usize::from(task), usize::from(choice));
        if self.world.handlers[task].is_some() {
            self.act_next(task)?;
        } else if let Some(channel) = task.checked_sub(self.world.processors.len()) {
            debug_assert!(self.rules.form == Form::Messages, "this form has no channels");
            let envelope = self.world.channels[channel].remove(choice);
            self.log(|| format!("n{} <- n{}: {:?}", envelope.to, envelope.from, envelope.letter));
            self.receive(task, envelope)?;
        } else {
            self.go_on(task, choice)?;
        }
        self.conclude(task);
        Ok(())
    }

    fn go_on(&mut self, task: usize, choice: usize) -> Result<(), Broken> {
        // The signal is the last choice.
        if self.takes_signal(task) && choice == self.processor_choices(task) {
            self.begin_handler(task);
            return Ok(());
        }
        let node = self.seat(task);
        let meets = self.world.processors[task].meeting > 0;
        match &mut self.world.processors[task].doing {
            Doing::Running => self.run(task, choice),
            &mut Doing::Fault { unit, write } => self.present_own(task, unit, Event::Fault { write }),
            &mut Doing::Closing { left: 0, all, release } => self.end_interval(task, all, release),
            &mut Doing::Closing { left, release, .. } => {
                self.present_own(task, left.trailing_zeros() as u8, release.close())
            }
            Doing::Waiting => Ok(()),
            Doing::Granted if meets => {
                self.met(task);
                Ok(())
            }
            Doing::Granted => {
                self.begin_acquire(task);
                Ok(())
            }
            Doing::Acquiring { left, acquire } => match left.first() {
                Some(&(unit, from, index, stamp)) => {
                    let notice = acquire.notice(NodeId(from.into()), index, stamp);
                    self.present_own(task, unit, notice)
                }
                None => {
                    let acquire = acquire.clone();
                    self.end_acquire(task, &acquire)
                }
            },
            Doing::Keeping { left: 0 } => self.arrive(task, 1),
            &mut Doing::Keeping { left } => {
                let mut upto = self.world.processors[task].collects.clone();
                if self.has(Bug::KeepForgetsOwn) {
                    upto[node] = u32::MAX;
                }
                self.present_own(task, left.trailing_zeros() as u8, Event::Keep { upto: &upto })
            }
            Doing::Collecting { left } => match left.first().copied() {
                Some((unit, from, index)) => {
                    let upto = self.world.processors[task].collects.clone();
                    self.present_own(task, unit, Event::Collect { from: NodeId(from.into()), index, upto: &upto })
                }
                None => self.end_collection(task),
            },
        }
    }

    fn run(&mut self, task: usize, choice: usize) -> Result<(), Broken> {
        let Some(op) = self.op(task).cloned() else { return Ok(()) };
        let node = self.seat(task);
        match op {
            Op::Load(at, register) => {
                if self.access(node, at.unit) == Access::None {
                    return self.begin_fault(task, at, false);
                }
                self.load(task, at, register)?;
                self.advance(task);
            }
            Op::Store(at, value) => {
                if self.access(node, at.unit) != Access::Write {
                    return self.begin_fault(task, at, true);
                }
                let latest = &mut self.world.latest[at.unit][at.word];
                *latest = value.unwrap_or(latest.wrapping_add(1));
                let stored = *latest;
                self.copy(node, at.unit as u8).frame[at.word] = stored;
                self.log(|| format!("n{node} p{task} stores u{}.{} = {stored}", at.unit, at.word));
                self.advance(task);
            }
            Op::Lock(lock) => return self.ask(task, Ask::Lock(lock as u8)),
            Op::Await(flag) => return self.ask(task, Ask::Await(flag as u8)),
            Op::Unlock(_) | Op::Barrier | Op::Set(_) => return self.begin_release(task),
            Op::Either(places) => self.jump(task, places[choice]),
        }
        Ok(())
    }

    fn load(&mut self, task: usize, at: Word, register: Option<usize>) -> Result<(), Broken> {
        let node = self.seat(task);
        let value = self.copy(node, at.unit as u8).frame[at.word];
        let latest = self.world.latest[at.unit][at.word];
        self.log(|| format!("n{node} p{task} loads u{}.{} = {value}", at.unit, at.word));
        if let Some(register) = register {
            self.world.registers[register] = value;
        }
        if value == latest || self.rules.program.racy {
            return Ok(());
        }
        Err(Broken::new(LOAD, format!("p{task} loads {value} from u{}.{}, not {latest}", at.unit, at.word)))
    }

    fn advance(&mut self, task: usize) {
        self.jump(task, usize::from(self.world.processors[task].next) + 1);
    }

    /// To this place of the script, through jumps without a choice.
    fn jump(&mut self, task: usize, mut place: usize) {
        while let Some(Op::Either(only)) = self.script(task).get(place)
            && let &[behind] = only.as_slice()
        {
            place = behind;
        }
        let processor = &mut self.world.processors[task];
        processor.next = place as u8;
        processor.doing = Doing::Running;
        self.end_handler_if_through(task);
    }

    fn begin_fault(&mut self, task: usize, at: Word, write: bool) -> Result<(), Broken> {
        let unit = at.unit as u8;
        self.world.processors[task].doing = Doing::Fault { unit, write };
        self.present_own(task, unit, Event::Fault { write })
    }

    /// Presents an event of this processor. It counts as asleep from now on: an answer that arrives before the end of
    /// the handler wakes it in time.
    fn present_own(&mut self, task: usize, unit: u8, event: Event<'_>) -> Result<(), Broken> {
        self.world.processors[task].asleep = true;
        let node = self.seat(task);
        self.present(task, node, unit, event, None)
    }

    /// The handler of what the processor presented has ended: the processor goes on.
    fn conclude(&mut self, task: usize) {
        if task >= self.world.processors.len() || self.world.handlers[task].is_some() {
            return;
        }
        let processor = &mut self.world.processors[task];
        let Some(outcome) = processor.outcome.take() else { return };
        if outcome == Outcome::Wait {
            return;
        }
        processor.asleep = false;
        match &mut processor.doing {
            Doing::Fault { .. } => processor.doing = Doing::Running,
            Doing::Closing { left, .. } | Doing::Keeping { left } => *left &= *left - 1,
            Doing::Collecting { left } => _ = left.remove(0),
            Doing::Acquiring { left, .. } => _ = left.remove(0),
            Doing::Running | Doing::Waiting | Doing::Granted => {}
        }
    }

    fn begin_release(&mut self, task: usize) -> Result<(), Broken> {
        let node = self.seat(task);
        let dirty = std::mem::take(&mut self.world.nodes[node].dirty);
        if dirty == 0 {
            return self.tell(task);
        }
        let release = Release::begin(&self.world.knowledge(node));
        self.world.nodes[node].releasing = task as u8 + 1;
        self.world.processors[task].doing = Doing::Closing { left: dirty, all: dirty, release };
        self.log(|| format!("n{node} p{task} ends an interval: {release:?}, units {dirty:#b}"));
        Ok(())
    }

    /// The interval goes into the log, then its index may be told.
    fn end_interval(&mut self, task: usize, units: u8, release: Release) -> Result<(), Broken> {
        let (node, Release { index, stamp }) = (self.seat(task), release);
        self.world.nodes[node].log[node].push(Interval { index, stamp, units });
        release.end(&mut self.world.knowledge(node));
        let past = self.world.nodes[node].seen.clone();
        self.world.past[node].push(past);
        self.world.nodes[node].releasing = 0;
        self.world.processors[task].doing = Doing::Running;
        self.tell(task)
    }

    /// Now others may know.
    fn tell(&mut self, task: usize) -> Result<(), Broken> {
        match self.op(task) {
            Some(&Op::Unlock(lock)) => {
                self.advance(task);
                self.inform(task, Ask::Unlock(lock as u8))
            }
            Some(&Op::Set(flag)) => {
                self.advance(task);
                self.inform(task, Ask::Set(flag as u8))
            }
            Some(Op::Barrier) => self.arrive(task, 0),
            Some(Op::Load(..) | Op::Store(..) | Op::Lock(_) | Op::Await(_) | Op::Either(_)) | None => Ok(()),
        }
    }

    fn arrive(&mut self, task: usize, meeting: u8) -> Result<(), Broken> {
        self.world.processors[task].meeting = meeting;
        self.world.processors[task].doing = Doing::Waiting;
        self.inform(task, Ask::Arrive(meeting))
    }

    /// A release tells the object's manager what the node knows.
    fn inform(&mut self, task: usize, ask: Ask) -> Result<(), Broken> {
        let (node, to) = (self.seat(task), ask.object() % self.nodes());
        let mut time = self.world.nodes[node].seen.clone();
        if self.has(Bug::OwnNewsOnly) {
            time.iter_mut().enumerate().filter(|(writer, _)| *writer != node).for_each(|(_, time)| *time = 0);
        }
        let news = self.news(node, to, &time);
        self.send(node, to, Letter::Ask(task as u8, ask, time, Some(news)))
    }

    fn ask(&mut self, task: usize, ask: Ask) -> Result<(), Broken> {
        let (node, to) = (self.seat(task), ask.object() % self.nodes());
        self.world.processors[task].doing = Doing::Waiting;
        let time = self.world.nodes[node].seen.clone();
        self.send(node, to, Letter::Ask(task as u8, ask, time, None))
    }

    fn begin_acquire(&mut self, task: usize) {
        let seat = self.seat(task);
        let skip = self.has(Bug::AcquireWithoutNotices);
        let collects = !self.world.processors[task].collects.is_empty();
        let node = &mut self.world.nodes[seat];
        node.acquiring = task as u8 + 1;
        node.collecting += u8::from(collects);
        let (acquire, mut left) = (Acquire::begin(node.seen.clone(), node.granted.clone()), Vec::new());
        for (writer, log) in node.log.iter().enumerate().filter(|_| !skip) {
            let intervals = acquire.intervals_of(NodeId::of(writer));
            for interval in log.iter().filter(|interval| intervals.contains(&interval.index)) {
                let units = (0..8).filter(|unit| interval.units & 1 << unit != 0);
                left.extend(units.map(|unit| (unit, writer as u8, interval.index, interval.stamp)));
            }
        }
        self.log(|| format!("n{seat} p{task} acquires: {acquire:?}, {left:?}"));
        self.world.processors[task].doing = Doing::Acquiring { left, acquire };
    }

    fn end_acquire(&mut self, task: usize, acquire: &Acquire<Times>) -> Result<(), Broken> {
        let node = self.seat(task);
        acquire.end(&mut self.world.knowledge(node));
        self.world.nodes[node].acquiring = 0;
        if self.world.processors[task].collects.is_empty() {
            self.advance(task);
        } else {
            let left = if self.has(Bug::CollectWithoutKeep) { 0 } else { self.all_units() };
            self.world.processors[task].doing = Doing::Keeping { left };
        }
        Ok(())
    }

    /// Do all processors of the node that come to the barrier collect? Before the last one does, a handler of the program may still run in
    /// one, and the others wait for that one.
    fn holds_faults(&self, node: usize) -> bool {
        let threads = self.rules.program.shape.threads;
        let scripts = &self.rules.program.scripts[node * threads..][..threads];
        let all = scripts.iter().filter(|script| script.contains(&Op::Barrier)).count();
        let enough = if self.has(Bug::FaultsHeldTooEarly) { 1 } else { all };
        enough > 0 && usize::from(self.world.nodes[node].collecting) >= enough
    }

    fn all_units(&self) -> u8 {
        (1 << self.rules.program.shape.units) - 1
    }

    /// A barrier of all has brought this time: the processor collects what is in it.
    pub(super) fn passed_barrier(&mut self, task: usize, time: &Times) {
        let processor = &self.world.processors[task];
        let next = processor.interrupted.as_ref().map_or(processor.next, |(next, _)| *next);
        let at = self.rules.program.scripts[task].get(usize::from(next));
        if self.rules.collects && at == Some(&Op::Barrier) && processor.meeting == 0 {
            self.world.processors[task].collects.clone_from(time);
        }
    }

    /// All have come to a further meeting of a collection.
    fn met(&mut self, task: usize) {
        let node = self.seat(task);
        if self.world.processors[task].meeting == 1 {
            let left = self.collected(task);
            self.world.processors[task].doing = Doing::Collecting { left };
            return;
        }
        let upto = std::mem::take(&mut self.world.processors[task].collects);
        for (log, upto) in self.world.nodes[node].log.iter_mut().zip(&upto) {
            log.retain(|interval| interval.index > *upto);
        }
        self.world.nodes[node].collecting -= 1;
        // It has a grant still, and acquires what threads outside the barrier have told meanwhile.
        self.world.processors[task].meeting = 0;
    }

    /// What is collected, by unit and writer: the last interval.
    fn collected(&mut self, task: usize) -> Vec<(u8, u8, u32)> {
        let (node, upto) = (self.seat(task), self.world.processors[task].collects.clone());
        let by_time = self.has(Bug::CollectByTime);
        let mut all = Vec::new();
        for unit in 0..self.rules.program.shape.units as u8 {
            for (writer, &upto) in upto.iter().enumerate() {
                let wrote = |interval: &&Interval| interval.units & 1 << unit != 0 && interval.index <= upto;
                let last = self.world.nodes[node].log[writer].iter().rfind(wrote).map(|interval| interval.index);
                let noticed = self.copy(node, unit).writers[writer].noticed;
                let last = if by_time { Some(noticed.min(upto)).filter(|index| *index > 0) } else { last };
                all.extend(last.map(|index| (unit, writer as u8, index)));
            }
        }
        all
    }

    /// Its diffs up to the barrier are dropped, then all meet once more.
    fn end_collection(&mut self, task: usize) -> Result<(), Broken> {
        let seat = self.seat(task);
        let upto = self.world.processors[task].collects[seat];
        for unit in 0..self.rules.program.shape.units {
            self.copy(seat, unit as u8).diffs.retain(|diff| diff.index > upto);
        }
        self.arrive(task, 2)
    }
}
