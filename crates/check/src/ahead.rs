//! Read faults that have not happened. A view *guesses* that it will read a unit and presents the fault early, as the runtime does:
//! together with a fault that has happened (`runtime/src/consistency/policy`), or in an acquire, which then fetches a page anew instead of closing it.
//!
//! ```text
//!   fault     present the fault,  try the guess,  present what is awaited until it is there,  open what is left
//!   acquire   Invalidate, or Invalidate and a guess in one nest,  present what is awaited ..,  close what is left
//!   a guess   lock the unit;  what would the fault mean?  ask the manager for the home,  lock and look at the home;  present it
//! ```
//!
//! All of it under the view's `acquiring` lock. The view's memory follows its tables when all nests are over: in between a page that is
//! to be opened is not there yet, and one that is to be closed, or to be fetched anew, is still there. A fault at a unit that is not in the
//! world takes guesses along too, so a guess may come whenever a processor runs its program.
//!
//! A guess is *refused* where it would take something from somebody: an owner's exclusive mode, or the choice of a home. That is policy,
//! and any guess must be safe: with [`Guesses::Any`] none is refused.
//!
//! With [`Guesses::Writing`] a view presents a write fault that no store follows. The runtime does this where it makes the buffer of a system
//! call writable: the call may then fail, or write less. Here it may be any page at any time.

use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Ahead, Event, Outcome};
use finespun_types::{Access, NodeId, ViewId};

use crate::driver::{Broken, Grain, Run};
use crate::early::{Early, Stage};
use crate::model::{Doing, Processor};
use crate::processor::{first_of, units_of};
use crate::program::{Guesses, Op, Word};
use crate::subject::{Quirk, Subject};

/// A guess that a processor may begin: the unit, and the unit of the fault that it goes with, if that one is in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guess {
    own: Option<u8>,
    unit: u8,
}

/// Is one of these processors, those of one view, about to change the mapping of the unit?
pub(crate) fn is_late(processors: &[Processor], unit: usize) -> bool {
    processors.iter().any(|Processor { early, .. }| (early.opening | early.closing) & 1 << unit != 0)
}

impl<P: Subject> Run<'_, P> {
    /// The guesses that a processor may begin now.
    pub(crate) fn guesses(&self, task: usize) -> impl Iterator<Item = Guess> {
        let (node, view) = self.seat(task);
        let seen = self.seen(node, view);
        let op = self.op(task).filter(|_| self.world.processors[task].doing == Doing::Running);
        let fault = match op {
            Some(&Op::Load(at, _)) if seen.access[at.unit] == Access::None => Some(at.unit as u8),
            _ => None,
        };
        let alone = seen.acquiring == 0 || self.has(Quirk::GuessBesideAcquire);
        let writes = self.guesses_writes();
        let able = self.world.guesses > 0 && op.is_some() && (alone || writes);
        let units = if able { self.rules.program.shape.units as u8 } else { 0 };
        let fault = fault.filter(|_| !writes);
        let enough = if writes { Access::Write } else { Access::Read };
        let guesses = (0..units).filter(move |&unit| seen.access[usize::from(unit)] < enough);
        let both = guesses.flat_map(move |unit| [None, fault].map(|own| Guess { own, unit }));
        let twice = move |guess: &Guess| guess.own.is_none() || guess.own == Some(guess.unit);
        let both = both.enumerate().filter(move |(place, guess)| place % 2 == 0 || !twice(guess));
        let free = move |guess: &Guess| self.lock_is_free(task, node, guess.own.unwrap_or(guess.unit));
        both.map(|(_, guess)| guess).filter(free)
    }

    /// Under the view's `acquiring` lock: the fault that has happened first, then the guess.
    pub(crate) fn begin_guess(&mut self, task: usize, Guess { own, unit }: Guess) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        self.world.guesses -= 1;
        if self.guesses_writes() {
            self.log(|| format!("{node:?} {view:?} p{task} guesses that it will write u{unit}"));
            if self.has(Quirk::OpensUnasked) {
                self.view(node, view).access[usize::from(unit)] = Access::Write;
                return Ok(());
            }
            return self.begin_fault(task, Word { unit: usize::from(unit), word: 0 }, true);
        }
        if !self.has(Quirk::GuessBesideAcquire) {
            self.view(node, view).acquiring = task as u8 + 1;
        }
        let processor = &mut self.world.processors[task];
        processor.doing = Doing::Ahead { own };
        processor.early.to_try = 1 << unit;
        self.log(|| format!("{node:?} {view:?} p{task} guesses u{unit}"));
        match own {
            Some(own) => {
                self.world.processors[task].early.asked = 1 << own;
                self.present_fault(task, own)
            }
            None => self.go_on_ahead(task, own, 0),
        }
    }

    /// May this acquire fetch the page anew, instead of closing it?
    pub(crate) fn may_refresh(&self, task: usize, unit: u8) -> bool {
        let (node, view) = self.seat(task);
        let seen = self.seen(node, view);
        self.world.guesses > 0 && !self.guesses_writes() && seen.access[usize::from(unit)] == Access::Read
    }

    /// Obeys the notice, and then guesses in the same nest.
    pub(crate) fn begin_refresh(&mut self, task: usize, unit: u8) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        self.world.guesses -= 1;
        self.log(|| format!("{node:?} {view:?} p{task} fetches u{unit} anew"));
        self.hold(task, node, unit);
        self.world.processors[task].early.stage = Stage::Obeying;
        if self.has(Quirk::RefreshWithoutInvalidate) {
            self.world.processors[task].taken &= !(1 << unit);
            return self.weigh(task, unit);
        }
        self.present_in_nest(task, unit, Event::Invalidate { view })
    }

    /// What is next of a fault with guesses, or of an acquire behind its notices: may it happen now?
    pub(crate) fn choices_ahead(&self, task: usize, own: Option<u8>) -> usize {
        let (node, _) = self.seat(task);
        let early = &self.world.processors[task].early;
        let free = |node, unit| usize::from(self.lock_is_free(task, node, unit));
        match early.stage {
            Stage::AtRest => {}
            Stage::AtManager(unit) => return free(self.place(node, unit).manager, unit),
            Stage::AtHome(unit, home) => return free(home, unit),
            Stage::Obeying | Stage::Naming | Stage::Presented | Stage::PresentedAgain => return 0,
        }
        match (first_of(early.to_try), awaited(early, own)) {
            (Some(unit), _) => free(node, unit),
            (None, Some(unit)) => self.can_present_again(task, unit) + usize::from(self.may_give_up(own, unit)),
            (None, None) => 1,
        }
    }

    fn can_present_again(&self, task: usize, unit: u8) -> usize {
        let awake = self.world.processors[task].asleep & 1 << unit == 0;
        usize::from(awake && self.lock_is_free(task, self.seat(task).0, unit))
    }

    /// Nobody has to wait for the answer to a guess.
    fn may_give_up(&self, own: Option<u8>, unit: u8) -> bool {
        own != Some(unit) && !self.refuses()
    }

    /// The answer will come all the same. A page that was to be fetched anew is closed.
    fn give_up(&mut self, task: usize, unit: u8) {
        let processor = &mut self.world.processors[task];
        processor.early.asked &= !(1 << unit);
        processor.asleep &= !(1 << unit);
        self.log(|| format!("p{task} waits for u{unit} no longer"));
        match self.world.processors[task].doing {
            Doing::Ahead { .. } => self.end_ahead_if_through(task),
            Doing::Acquiring => self.end_acquire_if_through(task),
            Doing::Running | Doing::Fault { .. } | Doing::Releasing | Doing::AtBarrier => {}
        }
    }

    /// Makes it happen.
    pub(crate) fn go_on_ahead(&mut self, task: usize, own: Option<u8>, choice: usize) -> Result<(), Broken> {
        let early = self.world.processors[task].early;
        if early.stage != Stage::AtRest {
            return self.look(task);
        }
        if let Some(unit) = first_of(early.to_try) {
            let (node, _) = self.seat(task);
            self.world.processors[task].early.to_try = 0;
            self.hold(task, node, unit);
            return self.weigh(task, unit);
        }
        let acquires = self.world.processors[task].doing == Doing::Acquiring;
        match awaited(&early, own) {
            Some(unit) if choice < self.can_present_again(task, unit) => return self.present_fault(task, unit),
            Some(unit) => self.give_up(task, unit),
            None if acquires => self.end_acquire(task),
            None => self.end_ahead(task),
        }
        Ok(())
    }

    /// What would the fault mean? Under the unit's lock.
    fn weigh(&mut self, task: usize, unit: u8) -> Result<(), Broken> {
        let (node, view) = self.seat(task);
        let place = self.place(node, unit);
        let state = self.copy(node, unit).unit;
        let refuses = self.refuses();
        match P::ahead(&state, place, view) {
            Ahead::Mapped => self.end_guess(task, unit, false),
            Ahead::No if refuses => self.end_guess(task, unit, true),
            Ahead::No | Ahead::HasCopy => self.present_guess(task, unit, Stage::Presented),
            // An acquire does not look.
            Ahead::Again | Ahead::First if !refuses && self.world.processors[task].doing == Doing::Acquiring => {
                self.present_guess(task, unit, Stage::Presented)
            }
            kind @ (Ahead::Again | Ahead::First) => {
                // Where homes move, the address fixes only the first of them.
                let (known, fixed) = (P::home(&state), place.fixed_home);
                let home = if self.has(Quirk::LooksWhereHomeWas) { fixed.or(known) } else { known.or(fixed) };
                let whom = home.unwrap_or(place.manager);
                match home {
                    _ if !self.may_look_at(node, whom) && refuses && (kind == Ahead::First || home.is_none()) => {
                        self.end_guess(task, unit, true)
                    }
                    _ if !self.may_look_at(node, whom) => self.present_guess(task, unit, Stage::Presented),
                    None => self.want_to_look(task, Stage::AtManager(unit)),
                    Some(home) => self.want_to_look(task, Stage::AtHome(unit, home)),
                }
            }
        }
    }

    /// Looking takes a lock, so it is a step of its own.
    fn want_to_look(&mut self, task: usize, stage: Stage) -> Result<(), Broken> {
        self.world.processors[task].early.stage = stage;
        if self.rules.grain == Grain::Event { self.look(task) } else { Ok(()) }
    }

    fn look(&mut self, task: usize) -> Result<(), Broken> {
        match self.world.processors[task].early.stage {
            Stage::AtManager(unit) => match P::managed_home(&self.world.homes[usize::from(unit)]) {
                None if self.refuses() => self.end_guess(task, unit, true),
                Some(home) if self.has(Quirk::ManagerOverHome) => self.want_to_look(task, Stage::AtHome(unit, home)),
                // Brings the name of the home, and nothing else yet: the manager's lock may not be taken over the home's.
                None | Some(_) => self.present_guess(task, unit, Stage::Naming),
            },
            Stage::AtHome(unit, home) => {
                // The home's lock is held until the guess is over: the fault takes it next.
                self.hold(task, home, unit);
                let at = self.copy_at(home, unit);
                let is_read = P::is_read(&self.world.directories[at]);
                if self.refuses() && !is_read {
                    self.end_guess(task, unit, true)
                } else {
                    self.present_guess(task, unit, Stage::Presented)
                }
            }
            Stage::AtRest | Stage::Obeying | Stage::Naming | Stage::Presented | Stage::PresentedAgain => Ok(()),
        }
    }

    fn guesses_writes(&self) -> bool {
        self.rules.program.guesses.1 == Guesses::Writing
    }

    fn refuses(&self) -> bool {
        self.rules.program.guesses.1 == Guesses::Refusing
    }

    fn may_look_at(&self, me: NodeId, other: NodeId) -> bool {
        me == other || self.rules.form.variant().metadata == Way::Direct
    }

    fn present_guess(&mut self, task: usize, unit: u8, stage: Stage) -> Result<(), Broken> {
        self.world.processors[task].early.stage = stage;
        self.present_fault(task, unit)
    }

    /// A read fault, of which it does not matter when it began: its time only tells fetches that were saved.
    fn present_fault(&mut self, task: usize, unit: u8) -> Result<(), Broken> {
        let (_, view) = self.seat(task);
        self.present_in_nest(task, unit, Event::ReadFault { view, since: 0 })
    }

    fn present_in_nest(&mut self, task: usize, unit: u8, event: Event<P::Msg>) -> Result<(), Broken> {
        self.present_own(task, unit, event)?;
        self.settle(task)?;
        self.conclude(task)
    }

    /// The handler of what a guess presented has ended.
    pub(crate) fn go_on_guessing(&mut self, task: usize, unit: u8, outcome: Outcome) -> Result<(), Broken> {
        let (bit, direct) = (1 << unit, !self.rules.form.variant().sends_messages());
        let waits = !self.has(Quirk::RefreshNotAwaited);
        let processor = &mut self.world.processors[task];
        match processor.early.stage {
            Stage::Obeying => {
                processor.taken &= !bit;
                let closes = processor.early.closing & bit != 0;
                if closes { self.weigh(task, unit) } else { self.end_guess(task, unit, false) }
            }
            Stage::Naming => {
                let (node, _) = self.seat(task);
                let state = self.copy(node, unit).unit;
                match P::home(&state).filter(|&home| self.may_look_at(node, home)) {
                    Some(home) => self.want_to_look(task, Stage::AtHome(unit, home)),
                    None if self.refuses() => self.end_guess(task, unit, true),
                    None => self.present_guess(task, unit, Stage::Presented),
                }
            }
            // The answer came inside the nest, whose locks need not be given back before it is used.
            Stage::Presented if outcome == Outcome::Wait && direct => {
                self.present_guess(task, unit, Stage::PresentedAgain)
            }
            Stage::Presented | Stage::PresentedAgain => {
                match outcome {
                    Outcome::Wait if waits || processor.doing != Doing::Acquiring => processor.early.asked |= bit,
                    Outcome::Wait => processor.early.closing &= !bit,
                    Outcome::Done | Outcome::Begun => {}
                }
                self.end_guess(task, unit, false)
            }
            Stage::AtRest | Stage::AtManager(_) | Stage::AtHome(..) => Ok(()),
        }
    }

    fn end_guess(&mut self, task: usize, unit: u8, refused: bool) -> Result<(), Broken> {
        for (node, unit) in std::mem::take(&mut self.world.chains[task].held) {
            self.copy(node, unit).lock = 0;
        }
        let stays_open = refused && self.has(Quirk::RefusedStaysOpen);
        let processor = &mut self.world.processors[task];
        processor.early.stage = Stage::AtRest;
        if processor.early.asked & 1 << unit == 0 {
            processor.asleep &= !(1 << unit);
        }
        if stays_open {
            processor.early.closing &= !(1 << unit);
        }
        match processor.doing {
            Doing::Ahead { .. } => self.end_ahead_if_through(task),
            Doing::Acquiring => self.end_acquire_if_through(task),
            Doing::Running | Doing::Fault { .. } | Doing::Releasing | Doing::AtBarrier => {}
        }
        Ok(())
    }

    /// Takes a lock until the guess is over.
    fn hold(&mut self, task: usize, node: NodeId, unit: u8) {
        let copy = self.copy(node, unit);
        if copy.lock == 0 {
            copy.lock = task as u8 + 1;
            self.world.chains[task].held.push((node, unit));
        }
    }

    /// Is nothing left of the guesses? What changes mappings is a step of its own where another thread of the view could tell.
    pub(crate) fn is_through(&self, task: usize) -> bool {
        let early = &self.world.processors[task].early;
        let unseen = self.rules.program.shape.threads == 1 || early.opening | early.closing == 0;
        early.stage == Stage::AtRest && early.to_try | early.asked == 0 && unseen
    }

    pub(crate) fn end_ahead_if_through(&mut self, task: usize) {
        if self.is_through(task) {
            self.end_ahead(task);
        }
    }

    fn end_ahead(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        self.change_mappings(task);
        self.world.processors[task].doing = Doing::Running;
        if !self.has(Quirk::GuessBesideAcquire) {
            self.view(node, view).acquiring = 0;
        }
    }

    /// The action [`Protect`](finespun_protocol::page::Action::Protect): at once, or when all nests are over.
    pub(crate) fn protect(&mut self, task: usize, (node, view): (NodeId, ViewId), unit: u8, access: Access) {
        let leaves = match self.world.processors.get(task).map(|processor| processor.doing) {
            Some(Doing::Ahead { .. }) => true,
            Some(Doing::Acquiring) => P::READS_AHEAD && self.rules.program.guesses.0 > 0,
            Some(Doing::Running | Doing::Fault { .. } | Doing::Releasing | Doing::AtBarrier) | None => false,
        };
        let several = self.rules.program.shape.threads > 1;
        let seen = self.view(node, view);
        let (bit, before) = (1 << unit, seen.access[usize::from(unit)]);
        // A store through a mapping that is closed late would be lost.
        let leaves =
            leaves && (access == Access::Read || (access == Access::None && (before != Access::Write || !several)));
        if !leaves {
            seen.access[usize::from(unit)] = access;
            seen.lowered &= !bit;
        }
        let Some(Processor { early, .. }) = self.world.processors.get_mut(task) else { return };
        let was_closing = early.closing & bit != 0;
        early.opening &= !bit;
        early.closing &= !bit;
        match access {
            Access::None if leaves => early.closing |= bit,
            // What was to be closed stays as it is.
            Access::Read if leaves && !was_closing => early.opening |= bit,
            Access::None | Access::Read | Access::Write => {}
        }
    }

    /// The view's memory follows its tables. Another thread of the view may have got more rights meanwhile: it faults once more.
    pub(crate) fn change_mappings(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        let early = std::mem::take(&mut self.world.processors[task].early);
        for unit in units_of(early.opening | early.closing) {
            let expected = P::access(&self.copy(node, unit).unit, view);
            let access = if early.opening & 1 << unit != 0 { Access::Read } else { Access::None };
            let seen = self.view(node, view);
            seen.access[usize::from(unit)] = access;
            if access < expected {
                seen.lowered |= 1 << unit;
            }
        }
    }
}

/// The unit that is waited for: the one whose fault has happened first.
fn awaited(early: &Early, own: Option<u8>) -> Option<u8> {
    own.filter(|own| early.asked & 1 << own != 0).or_else(|| first_of(early.asked))
}
