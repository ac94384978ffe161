//! What can happen next, and makes it happen: processors follow their scripts, through faults and the numbered steps of
//! release and acquire (`cashmere/sync.rs`); messages arrive.

use finespun_engine::{Acquire, Fault, Next, Release, Todo};
use finespun_protocol::page::{Event, Outcome};
use finespun_types::{Access, NodeId, ViewId};

use crate::driver::{Broken, Run};
use crate::model::{Doing, Envelope};
use crate::program::{Op, Shape, Word};
use crate::show;
use crate::subject::{Model, Quirk, Subject};

/// A load saw something else.
pub const LOAD: &str = "a load returns the last store that happens before it";

/// One thing that can happen: which task goes on, and how if there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// A processor, or behind them a channel.
    pub task: u16,
    /// Which branch, or which message.
    pub choice: u16,
}

impl<P: Subject> Run<'_, P> {
    fn shape(&self) -> Shape {
        self.rules.program.shape
    }

    /// Where a processor runs.
    pub(crate) fn seat(&self, processor: usize) -> (NodeId, ViewId) {
        let Shape { views, threads, .. } = self.shape();
        let view = processor / threads;
        (NodeId::of(view / views), ViewId((view % views) as u8))
    }

    pub(crate) fn op(&self, processor: usize) -> Option<&Op> {
        self.script(processor).get(usize::from(self.world.processors[processor].next))
    }

    /// Has every processor done its script, and is nothing under way?
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let scripts = (0..self.shape().processors()).all(|processor| self.op(processor).is_none());
        scripts
            && self.world.chains.iter().all(|chain| chain.is_idle())
            && self.world.channels.iter().all(Vec::is_empty)
    }

    /// Everything that can happen now.
    pub fn moves(&self, out: &mut Vec<Move>) {
        out.clear();
        for task in 0..self.world.chains.len() {
            for choice in 0..self.choices(task) {
                out.push(Move { task: task as u16, choice: choice as u16 });
            }
        }
    }

    fn choices(&self, task: usize) -> usize {
        let chain = &self.world.chains[task];
        let free =
            |at: Option<(NodeId, u8)>| usize::from(at.is_none_or(|(node, unit)| self.lock_is_free(task, node, unit)));
        if !chain.is_inside()
            && let Some(first) = chain.late.first()
        {
            return free(Some((first.to, first.unit)));
        }
        if chain.nest.is_some() {
            return free(self.next_lock(task));
        }
        match task.checked_sub(self.shape().processors()) {
            None => self.processor_choices(task) + self.guesses(task).count() + usize::from(self.takes_signal(task)),
            Some(channel) if channel >= self.world.channels.len() => self.revoker_choices(task, channel),
            Some(channel) => {
                let waiting = &self.world.channels[channel];
                let first = waiting.first().map_or(0, |first| free(Some((first.to, first.unit))));
                if self.has(Quirk::UnorderedChannels) { first * waiting.len() } else { first }
            }
        }
    }

    /// The view of a communication thread.
    fn revoker(&self, behind: usize) -> (NodeId, ViewId) {
        let (view, views) = (behind - self.world.channels.len(), self.shape().views);
        (NodeId::of(view / views), ViewId((view % views) as u8))
    }

    /// A communication thread takes any unit of its list whose lock is free.
    fn revoker_choices(&self, task: usize, behind: usize) -> usize {
        let (node, view) = self.revoker(behind);
        let listed = self.seen(node, view).noticed;
        units_of(listed).filter(|&unit| self.lock_is_free(task, node, unit)).count()
    }

    fn revoke(&mut self, task: usize, behind: usize, choice: usize) -> Result<(), Broken> {
        let (node, view) = self.revoker(behind);
        let listed = self.view(node, view).noticed;
        let able = units_of(listed).filter(|&unit| self.lock_is_free(task, node, unit)).nth(choice);
        if let Some(unit) = able {
            self.view(node, view).noticed &= !(1 << unit);
            self.present(task, node, unit, Event::Invalidate { view })?;
        }
        Ok(())
    }

    /// A release that goes on: it flushes the first unit that need not wait, or ends.
    fn release_choices(&self, task: usize) -> usize {
        let processor = &self.world.processors[task];
        let (node, view) = self.seat(task);
        let list = self.seen(node, Release::list::<P>(view));
        let open = if self.has(Quirk::ReleaseTooEarly) { 0 } else { u32::from(list.open) };
        let ready = first_of(processor.taken & !processor.asleep);
        let left = processor.taken.count_ones() as usize;
        match (self.release_of(task).next(left, ready.is_some(), open, false), ready) {
            (Todo::Present(_), Some(unit)) if self.lock_is_free(task, node, unit) => {
                let writes = self.seen(node, view).access[usize::from(unit)] == Access::Write;
                1 + usize::from(P::KEEPS && self.rules.program.keeps && writes)
            }
            (Todo::Present(_) | Todo::Wait, _) => 0,
            (Todo::Over, _) => 1,
        }
    }

    fn release_of(&self, task: usize) -> Release {
        Release { view: self.seat(task).1, since: self.world.processors[task].since }
    }

    fn processor_choices(&self, task: usize) -> usize {
        let processor = &self.world.processors[task];
        let (node, view) = self.seat(task);
        let (seen, list) = (self.seen(node, view), self.seen(node, Release::list::<P>(view)));
        let present = |unit: u8| processor.asleep & 1 << unit == 0 && self.lock_is_free(task, node, unit);
        let able = match processor.doing {
            Doing::Running => match self.op(task) {
                None => false,
                Some(&Op::Load(at, _)) => seen.access[at.unit] != Access::None || present(at.unit as u8),
                Some(&Op::Store(at, _)) => seen.access[at.unit] == Access::Write || present(at.unit as u8),
                Some(&Op::Lock(lock)) => self.world.locks[lock] == 0 && seen.acquiring == 0,
                Some(&Op::Await(flag)) => self.world.flags & 1 << flag != 0 && seen.acquiring == 0,
                Some(Op::Unlock(_) | Op::Barrier | Op::Set(_)) => list.releasing == 0,
                Some(Op::Either(places)) => return places.len(),
            },
            Doing::Fault { unit, .. } => present(unit),
            Doing::Ahead { own } => return self.choices_ahead(task, own),
            Doing::Releasing => return self.release_choices(task),
            Doing::Acquiring => match first_of(processor.taken) {
                None => return self.choices_ahead(task, None),
                Some(unit) if processor.early.is_at_rest() => {
                    return usize::from(present(unit)) * (1 + usize::from(self.may_refresh(task, unit)));
                }
                Some(_) => return self.choices_ahead(task, None),
            },
            Doing::AtBarrier => self.world.open & 1 << task != 0 && seen.acquiring == 0,
        };
        usize::from(able)
    }

    /// Makes it happen.
    ///
    /// # Errors
    /// A sentence that does not hold.
    pub fn apply(&mut self, Move { task, choice }: Move) -> Result<(), Broken> {
        let (task, choice) = (usize::from(task), usize::from(choice));
        let chain = &mut self.world.chains[task];
        if !chain.is_inside() && !chain.late.is_empty() {
            let envelope = chain.late.remove(0);
            self.receive(task, envelope)?;
        } else if chain.nest.is_some() {
            self.log_action(task);
            self.step(task)?;
        } else if let Some(behind) = task.checked_sub(self.shape().processors() + self.world.channels.len()) {
            self.revoke(task, behind + self.world.channels.len(), choice)?;
        } else if let Some(channel) = task.checked_sub(self.shape().processors()) {
            debug_assert!(self.rules.form.variant().sends_messages(), "this form has no channels");
            let envelope: Envelope<P::Msg> = self.world.channels[channel].remove(choice);
            self.receive(task, envelope)?;
        } else {
            self.go_on(task, choice)?;
        }
        self.settle(task)?;
        self.conclude(task)
    }

    fn log_action(&mut self, task: usize) {
        let Some((unit, nest)) = &self.world.chains[task].nest else { return };
        if let Next::Act(node, &action) = nest.next() {
            let unit = *unit;
            self.log(|| format!("{node:?} u{unit}   {}", show::action::<P>(&action)));
        }
    }

    fn go_on(&mut self, task: usize, choice: usize) -> Result<(), Broken> {
        // The signal is the last choice.
        if self.takes_signal(task) && choice + 1 == self.choices(task) {
            self.begin_handler(task);
            return Ok(());
        }
        match self.world.processors[task].doing {
            Doing::Running => match choice.checked_sub(self.processor_choices(task)) {
                None => self.run(task, choice),
                Some(behind) => {
                    let guess = self.guesses(task).nth(behind);
                    guess.map_or(Ok(()), |guess| self.begin_guess(task, guess))
                }
            },
            Doing::Fault { unit, write } => self.fault(task, unit, write),
            Doing::Releasing => self.release(task, choice == 1),
            Doing::Ahead { own } => self.go_on_ahead(task, own, choice),
            Doing::Acquiring => self.acquire(task, choice),
            Doing::AtBarrier => {
                self.world.open &= !(1 << task);
                self.begin_acquire(task);
                Ok(())
            }
        }
    }

    fn run(&mut self, task: usize, choice: usize) -> Result<(), Broken> {
        let Some(op) = self.op(task).cloned() else { return Ok(()) };
        let (node, view) = self.seat(task);
        match op {
            Op::Load(at, register) => {
                if self.view(node, view).access[at.unit] == Access::None {
                    return self.begin_fault(task, at, false);
                }
                self.load(task, at, register)?;
                self.advance(task);
            }
            Op::Store(at, value) => {
                if self.view(node, view).access[at.unit] != Access::Write {
                    return self.begin_fault(task, at, true);
                }
                let latest = &mut self.world.latest[at.unit][at.word];
                *latest = value.unwrap_or(latest.wrapping_add(1));
                let stored = *latest;
                self.copy(node, at.unit as u8).frame[at.word] = stored;
                self.log(|| format!("{node:?} {view:?} p{task} stores u{}.{} = {stored}", at.unit, at.word));
                self.advance(task);
            }
            Op::Lock(lock) => {
                self.world.locks[lock] = task as u8 + 1;
                self.log(|| format!("{node:?} {view:?} p{task} has lock {lock}"));
                self.begin_acquire(task);
            }
            Op::Await(flag) => {
                self.log(|| format!("{node:?} {view:?} p{task} sees flag {flag}"));
                self.begin_acquire(task);
            }
            Op::Unlock(_) | Op::Barrier | Op::Set(_) => self.begin_release(task),
            Op::Either(places) => self.jump(task, places[choice]),
        }
        Ok(())
    }

    fn load(&mut self, task: usize, at: Word, register: Option<usize>) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        let value = self.copy(node, at.unit as u8).frame[at.word];
        let latest = self.world.latest[at.unit][at.word];
        self.log(|| format!("{node:?} {view:?} p{task} loads u{}.{} = {value}", at.unit, at.word));
        if let Some(register) = register {
            self.world.registers[register] = value;
        }
        if value == latest || (self.rules.program.racy && P::MODEL == Model::Release) {
            return Ok(());
        }
        Err(Broken::new(LOAD, format!("p{task} loads {value} from u{}.{}, not {latest}", at.unit, at.word)))
    }

    fn advance(&mut self, task: usize) {
        self.jump(task, usize::from(self.world.processors[task].next) + 1);
    }

    /// To this place of the script, through jumps without a choice.
    fn jump(&mut self, task: usize, place: usize) {
        let mut place = place;
        while let Some(Op::Either(only)) = self.script(task).get(place)
            && let &[behind] = only.as_slice()
        {
            place = behind;
        }
        self.world.processors[task].next = place as u8;
        self.end_handler_if_through(task);
    }

    pub(crate) fn begin_fault(&mut self, task: usize, at: Word, write: bool) -> Result<(), Broken> {
        let (node, _) = self.seat(task);
        let unit = at.unit as u8;
        let since = self.tick(node);
        let processor = &mut self.world.processors[task];
        processor.doing = Doing::Fault { unit, write };
        processor.since = since;
        self.fault(task, unit, write)
    }

    fn fault(&mut self, task: usize, unit: u8, write: bool) -> Result<(), Broken> {
        let (_, view) = self.seat(task);
        let since = self.world.processors[task].since;
        self.present_own(task, unit, Fault { view, writes: write, since }.demand().of())
    }

    /// Presents an event of this processor. It counts as asleep from now on: an answer that arrives before the end of
    /// the handler wakes it in time.
    pub(crate) fn present_own(&mut self, task: usize, unit: u8, event: Event<P::Msg>) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        self.world.processors[task].asleep |= 1 << unit;
        let outcome = self.present(task, node, unit, event)?;
        self.world.processors[task].outcome = Some((unit, outcome));
        if outcome == Outcome::Begun {
            self.view(node, Release::list::<P>(view)).open += 1;
        }
        Ok(())
    }

    /// The handler of what the processor presented has ended, and nothing is put aside: the processor goes on.
    pub(crate) fn conclude(&mut self, task: usize) -> Result<(), Broken> {
        if task >= self.shape().processors() || self.world.chains[task].is_inside() {
            return Ok(());
        }
        let processor = &mut self.world.processors[task];
        let Some((unit, outcome)) = processor.outcome.take() else { return Ok(()) };
        if outcome != Outcome::Wait {
            processor.asleep &= !(1 << unit);
        }
        if !processor.early.is_at_rest() {
            return self.go_on_guessing(task, unit, outcome);
        }
        if outcome == Outcome::Wait {
            return Ok(());
        }
        match processor.doing {
            Doing::Fault { .. } => {
                processor.doing = Doing::Running;
                processor.since = 0;
            }
            Doing::Releasing => processor.taken &= !(1 << unit),
            Doing::Ahead { .. } => {
                processor.early.asked &= !(1 << unit);
                self.end_ahead_if_through(task);
            }
            Doing::Acquiring => {
                let list = if processor.taken == 0 { &mut processor.early.asked } else { &mut processor.taken };
                *list &= !(1 << unit);
                self.end_acquire_if_through(task);
            }
            Doing::Running | Doing::AtBarrier => {}
        }
        Ok(())
    }

    /// Step 1 of a release.
    fn begin_release(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        let now = self.tick(node);
        let several = self.shape().threads > 1 && !self.has(Quirk::SkipWithThreads);
        let seen = self.view(node, Release::list::<P>(view));
        let taken = std::mem::take(&mut seen.dirty);
        seen.releasing = task as u8 + 1;
        if P::BROADCASTS {
            self.world.intervals[usize::from(node.0)] += 1;
        }
        let processor = &mut self.world.processors[task];
        processor.taken = taken;
        processor.since = Release::begin(view, now, several).since;
        processor.doing = Doing::Releasing;
        self.log(|| format!("{node:?} {view:?} p{task} begins a release of units {taken:#b}"));
    }

    /// Steps 2, 3 and 4 of a release. `keep`: the view may keep its right to write the unit that comes first.
    fn release(&mut self, task: usize, keep: bool) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        let processor = &self.world.processors[task];
        if let Some(unit) = first_of(processor.taken & !processor.asleep) {
            return self.present_own(task, unit, self.release_of(task).flush(keep).of());
        }
        self.view(node, Release::list::<P>(view)).releasing = 0;
        let processor = &mut self.world.processors[task];
        processor.doing = Doing::Running;
        processor.since = 0;
        self.log(|| format!("{node:?} {view:?} p{task} ends its release"));
        self.tell(task);
        Ok(())
    }

    /// Step 4 of a release: now others may know.
    fn tell(&mut self, task: usize) {
        match self.op(task).cloned() {
            Some(Op::Unlock(lock)) => {
                self.world.locks[lock] = 0;
                self.advance(task);
            }
            Some(Op::Set(flag)) => {
                self.world.flags |= 1 << flag;
                self.advance(task);
            }
            Some(Op::Barrier) => self.arrive(task),
            Some(Op::Load(..) | Op::Store(..) | Op::Lock(_) | Op::Await(_) | Op::Either(_)) | None => {}
        }
    }

    fn arrive(&mut self, task: usize) {
        self.world.processors[task].doing = Doing::AtBarrier;
        self.world.arrived |= 1 << task;
        let scripts = &self.rules.program.scripts;
        let takes_part = |&processor: &usize| scripts[processor].contains(&Op::Barrier);
        let all = (0..scripts.len()).filter(takes_part).fold(0, |set, processor| set | 1 << processor);
        if self.world.arrived == all {
            self.world.arrived = 0;
            self.world.open = all;
        }
    }

    /// Step 1 of an acquire.
    fn begin_acquire(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        let skip = !Acquire::obeys::<P>() || self.has(Quirk::AcquireWithoutNotices);
        let seen = self.view(node, view);
        let taken = if skip { 0 } else { std::mem::take(&mut seen.noticed) };
        seen.acquiring = task as u8 + 1;
        let processor = &mut self.world.processors[task];
        processor.taken = taken;
        processor.doing = Doing::Acquiring;
        self.log(|| format!("{node:?} {view:?} p{task} begins an acquire, notices {taken:#b}"));
        self.end_acquire_if_through(task);
    }

    /// Step 2 of an acquire. By choice the page is fetched anew at once, instead of being closed.
    fn acquire(&mut self, task: usize, choice: usize) -> Result<(), Broken> {
        let (_, view) = self.seat(task);
        let processor = &self.world.processors[task];
        match first_of(processor.taken) {
            Some(unit) if processor.early.is_at_rest() && choice == 1 => self.begin_refresh(task, unit),
            Some(unit) if processor.early.is_at_rest() => self.present_own(task, unit, Acquire { view }.demand().of()),
            Some(_) | None => self.go_on_ahead(task, None, choice),
        }
    }

    pub(crate) fn end_acquire_if_through(&mut self, task: usize) {
        if self.world.processors[task].taken == 0 && self.is_through(task) {
            self.end_acquire(task);
        }
    }

    pub(crate) fn end_acquire(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        self.change_mappings(task);
        self.world.processors[task].doing = Doing::Running;
        self.view(node, view).acquiring = 0;
        self.advance(task);
    }
}

/// The units of a list.
pub(crate) fn units_of(list: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |unit| list & 1 << unit != 0)
}

/// The first unit of a list.
pub(crate) fn first_of(list: u8) -> Option<u8> {
    (list != 0).then(|| list.trailing_zeros() as u8)
}
