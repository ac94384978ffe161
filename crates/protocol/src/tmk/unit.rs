//! A node's copy of one unit: which intervals wrote it, and whose stores the copy has.

use finespun_types::{Access, NodeId, NodeIndex};

/// What a node knows of one writer of one unit. All-zero: it never wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Seen {
    /// Its last interval known to have written the unit.
    pub noticed: u32,
    /// Its last interval whose stores the copy has.
    pub applied: u32,
    /// What `applied` becomes when all diffs asked for are there; 0: nothing of it has come.
    pub coming: u32,
}

/// What is under way for the copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mode {
    /// No copy. If nobody is known to have written the unit, the frame is all-zero and will do.
    #[default]
    Absent,
    /// The last writer was asked for its copy.
    AskingBase,
    /// A copy; it lacks whatever is noticed and not applied.
    Present,
    /// A copy; writers were asked for diffs.
    AskingDiffs,
}

/// The node's copy of one unit. Plain data; all-zero is a unit nobody has touched. Beside it stands one [`Seen`] per node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Unit {
    /// What is under way.
    pub mode: Mode,
    /// The view may load.
    pub mapped: bool,
    /// The view may store.
    pub writable: bool,
    /// The open interval has written it: it is on the dirty list, and there is a twin.
    pub written: bool,
    /// There is a twin.
    pub has_twin: bool,
    /// Answers due.
    pub awaiting: u8,
    /// The node of the interval with the highest stamp known to have written the unit, plus one; 0: nobody.
    last_plus_one: NodeIndex,
    /// Its stamp.
    pub last_stamp: u32,
    /// The last ended interval whose stores only frame and twin tell; 0: none.
    pub owed: u32,
    /// The stamp of the first such interval.
    pub owed_stamp: u32,
}

/// What happens to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A load or store of the node's view faulted.
    Fault {
        /// A store.
        write: bool,
    },
    /// The open interval ends. For each unit on the dirty list.
    Close {
        /// Its index.
        index: u32,
        /// Its stamp.
        stamp: u32,
    },
    /// An acquire obeys a write notice.
    Notice {
        /// Who wrote.
        from: NodeId,
        /// In which interval.
        index: u32,
        /// Its stamp.
        stamp: u32,
    },
    /// A node asks for this node's diffs.
    AskDiffs {
        /// Who.
        from: NodeId,
        /// It has those up to this interval.
        after: u32,
        /// It knows of those up to this one.
        upto: u32,
    },
    /// A node asks for the copy.
    AskBase {
        /// Who.
        from: NodeId,
    },
    /// The copy of another node came.
    Base {
        /// By node: which interval's stores it has.
        applied: &'a [u32],
    },
    /// The node asked for its copy has none, but knows a later writer.
    NoBase {
        /// Who.
        last: NodeId,
        /// The stamp.
        stamp: u32,
    },
    /// All diffs of a writer that were asked for came, the last of this interval.
    Diffs {
        /// Whose.
        from: NodeId,
        /// The last.
        upto: u32,
    },
    /// The first half of a collection: make the copy complete, if this node or others will count on it.
    Keep {
        /// By node: the last interval that will be collected.
        upto: &'a [u32],
    },
    /// The second half: everything up to `upto` is forgotten. For each writer the last such interval that has written the unit.
    Collect {
        /// The writer.
        from: NodeId,
        /// The interval.
        index: u32,
        /// By node: the last interval collected.
        upto: &'a [u32],
    },
}

/// What the driver must do, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Ask this node for its copy.
    AskBase(NodeId),
    /// Ask every writer of [`Unit::lacks`] for its diffs.
    AskDiffs,
    /// Answer with the node's own diffs after `after`, up to the first that reaches `upto`, oldest first.
    SendDiffs {
        /// Whom.
        to: NodeId,
        /// Not this.
        after: u32,
        /// This too.
        upto: u32,
    },
    /// Answer with the copy and what it has applied.
    SendBase {
        /// Whom.
        to: NodeId,
        /// The twin instead of the frame: the stores of the open interval may still be taken back.
        twin: bool,
    },
    /// Answer that there is no copy here, and who wrote last.
    SendNoBase {
        /// Whom.
        to: NodeId,
        /// The last writer known.
        last: NodeId,
        /// Its stamp.
        stamp: u32,
    },
    /// Make the diff of frame and twin and keep it, for others to ask for; also an empty one. With `refresh` the twin becomes what
    /// was read, without it the twin is dropped next.
    MakeDiff {
        /// The interval it counts as.
        index: u32,
        /// The stamp it is ordered by.
        stamp: u32,
        /// Keep the twin.
        refresh: bool,
    },
    /// Copy the frame to a new twin.
    MakeTwin,
    /// Forget the twin.
    DropTwin,
    /// Copy the page that came over the frame.
    Install,
    /// Apply all diffs that came to the frame, in the order (stamp, node).
    Apply {
        /// To the twin too: they are no stores of this node.
        twin: bool,
    },
    /// Change what the view may do.
    Protect(Access),
    /// Put the unit on the dirty list.
    ListDirty,
    /// Let waiting threads look again.
    Wake,
}

/// At most this many actions answer one event.
const ACTIONS_MAX: usize = 4;

/// A short list of actions, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    list: [Action; ACTIONS_MAX],
    len: u8,
}

impl Actions {
    fn push(&mut self, action: Action) {
        self.list[usize::from(self.len)] = action;
        self.len += 1;
    }

    /// The actions, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Action] {
        &self.list[..usize::from(self.len)]
    }
}

/// Where the presenter of an event stands after the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Finished.
    Done,
    /// Present the same event again when the node was woken.
    Wait,
}

/// A table's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// For the presenter.
    pub outcome: Outcome,
    /// For the driver.
    pub actions: Actions,
}

impl Step {
    fn of(outcome: Outcome, actions: &[Action]) -> Self {
        let mut all = Actions { list: [Action::Wake; ACTIONS_MAX], len: 0 };
        actions.iter().for_each(|&action| all.push(action));
        Self { outcome, actions: all }
    }

    fn done(actions: &[Action]) -> Self {
        Self::of(Outcome::Done, actions)
    }

    fn wait(actions: &[Action]) -> Self {
        Self::of(Outcome::Wait, actions)
    }
}

/// A pair that cannot occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The copy.
    pub unit: Unit,
    /// What happened, in a word.
    pub event: &'static str,
}

impl Unit {
    /// The last writer known.
    #[must_use]
    pub fn last(&self) -> Option<NodeId> {
        self.last_plus_one.checked_sub(1).map(NodeId)
    }

    /// What the copy lacks of a writer: after the first interval, up to the second.
    #[must_use]
    pub fn lacks(seen: &Seen) -> Option<(u32, u32)> {
        (seen.noticed > seen.applied).then_some((seen.applied, seen.noticed))
    }

    /// Has the copy everything that is noticed?
    #[must_use]
    pub fn is_complete(writers: &[Seen]) -> bool {
        writers.iter().all(|seen| Self::lacks(seen).is_none())
    }

    /// One row per (mode, event); a row that needs more calls a named function. `writers` has one word per node.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, me: NodeId, writers: &mut [Seen], event: Event<'_>) -> Result<Step, Impossible> {
        use Event::{AskBase, AskDiffs, Base, Close, Collect, Diffs, Fault, Keep, NoBase, Notice};
        use Mode::{Absent, AskingBase, AskingDiffs, Present};

        Ok(match (self.mode, event) {
            // Faults.
            (Absent,                   Fault { write })            => return self.first_touch(me, writers, write),
            (Present,                  Fault { .. }) if !Self::is_complete(writers) => self.ask(writers),
            (Present,                  Fault { write: false })     => self.map_read(),
            (Present,                  Fault { write: true })      => self.map_write(),
            (AskingBase | AskingDiffs, Fault { .. })               => Step::wait(&[]),

            // Release. Also while an answer is due: another thread of the view waits for it.
            (Present | AskingDiffs,    Close { index, stamp }) if self.written => self.close(me, writers, index, stamp),

            // Acquire.
            (Absent | AskingBase | Present | AskingDiffs, Notice { from, index, stamp }) => self.notice(writers, from, index, stamp),

            // Others ask. What is owed is settled first, so that nobody ever has a part of a diff.
            (Present | AskingDiffs,    AskDiffs { from, after, upto }) => self.send_diffs(from, after, upto),
            (Present | AskingDiffs,    AskBase { from })           => self.send_base(from),
            (Absent | AskingBase,      AskBase { from })           => return self.redirect(from),

            // Answers.
            (AskingBase,               Base { applied })           => self.install(writers, applied),
            (AskingBase,               NoBase { last, stamp })     => self.no_base(last, stamp),
            (AskingDiffs,              Diffs { from, upto }) if self.awaiting > 0 => self.arrived(writers, from, upto),

            // Collection.
            (Absent,                   Keep { .. })                => Step::done(&[]),
            (Present,                  Keep { upto })              => self.keep(me, writers, upto),
            (AskingBase | AskingDiffs, Keep { .. })                => Step::wait(&[]),
            (Absent | AskingBase,      Collect { .. })             => Step::done(&[]),
            (Present | AskingDiffs,    Collect { from, index, upto }) => return self.collect(me, writers, (from, index), upto),

            // Everything else, spelled out.
            (Absent | AskingBase, Close { .. }) | (Present | AskingDiffs, Close { .. })  // not on the dirty list
            | (Absent | AskingBase, AskDiffs { .. })                     // its own intervals are collected
            | (Absent | Present | AskingDiffs, Base { .. } | NoBase { .. })
            | (Absent | AskingBase | Present | AskingDiffs, Diffs { .. })
                => return Err(self.impossible(name_of(event))),
        })
    }

    fn impossible(&self, event: &'static str) -> Impossible {
        Impossible { unit: *self, event }
    }

    /// A last writer keeps its copy, so a node without one is not it.
    fn first_touch(&mut self, me: NodeId, writers: &[Seen], write: bool) -> Result<Step, Impossible> {
        match self.last() {
            None => {
                self.mode = Mode::Present;
                debug_assert!(Self::is_complete(writers), "who is noticed is the last writer, or another");
                Ok(if write { self.map_write() } else { self.map_read() })
            }
            Some(last) if last == me => Err(self.impossible("Fault at the last writer without its copy")),
            Some(last) => {
                self.mode = Mode::AskingBase;
                Ok(Step::wait(&[Action::AskBase(last)]))
            }
        }
    }

    fn ask(&mut self, writers: &[Seen]) -> Step {
        self.mode = Mode::AskingDiffs;
        self.awaiting = writers.iter().filter(|seen| Self::lacks(seen).is_some()).count() as u8;
        Step::wait(&[Action::AskDiffs])
    }

    fn map_read(&mut self) -> Step {
        self.mapped = true;
        // A view that may write already keeps that right: the fault was spurious.
        Step::done(&[Action::Protect(if self.writable { Access::Write } else { Access::Read })])
    }

    /// The twin of an interval that is owed serves the open one too. A new twin before the right to write: no store may miss it.
    fn map_write(&mut self) -> Step {
        let mut step = Step::done(&[]);
        if !self.has_twin {
            self.has_twin = true;
            step.actions.push(Action::MakeTwin);
        }
        if !self.written {
            self.written = true;
            step.actions.push(Action::ListDirty);
        }
        self.mapped = true;
        self.writable = true;
        step.actions.push(Action::Protect(Access::Write));
        step
    }

    /// The rights go, so that the stores of the next interval are noticed; the twin stays.
    fn close(&mut self, me: NodeId, writers: &mut [Seen], index: u32, stamp: u32) -> Step {
        self.written = false;
        if self.owed == 0 {
            self.owed_stamp = stamp;
        }
        self.owed = index;
        let own = &mut writers[usize::from(me.0)];
        (own.noticed, own.applied) = (index, index);
        self.wrote(me, stamp);
        if core::mem::take(&mut self.writable) { Step::done(&[Action::Protect(Access::Read)]) } else { Step::done(&[]) }
    }

    fn wrote(&mut self, who: NodeId, stamp: u32) {
        if (stamp, who.0 + 1) > (self.last_stamp, self.last_plus_one) {
            (self.last_stamp, self.last_plus_one) = (stamp, who.0 + 1);
        }
    }

    /// A copy that has the interval already, with a page from somebody who had it, stays. What is owed is settled even then: stores
    /// from here on come after the noticed interval, and must not be counted as older.
    fn notice(&mut self, writers: &mut [Seen], from: NodeId, index: u32, stamp: u32) -> Step {
        let seen = &mut writers[usize::from(from.0)];
        seen.noticed = seen.noticed.max(index);
        let lacks = Self::lacks(seen).is_some();
        self.wrote(from, stamp);
        let mut step = self.settle();
        if lacks && self.mapped {
            self.mapped = false;
            self.writable = false;
            step.actions.push(Action::Protect(Access::None));
        }
        step
    }

    /// Makes the diff that is owed. While the open interval writes, the twin goes on, as what was sent.
    fn settle(&mut self) -> Step {
        let mut step = Step::done(&[]);
        if self.owed > 0 {
            step.actions.push(Action::MakeDiff { index: self.owed, stamp: self.owed_stamp, refresh: self.written });
            self.owed = 0;
            if !self.written {
                self.has_twin = false;
                step.actions.push(Action::DropTwin);
            }
        }
        step
    }

    fn send_diffs(&mut self, to: NodeId, after: u32, upto: u32) -> Step {
        let mut step = self.settle();
        step.actions.push(Action::SendDiffs { to, after, upto });
        step
    }

    fn send_base(&mut self, to: NodeId) -> Step {
        let mut step = self.settle();
        step.actions.push(Action::SendBase { to, twin: self.written });
        step
    }

    fn redirect(&self, to: NodeId) -> Result<Step, Impossible> {
        let last = self.last().ok_or_else(|| self.impossible("AskBase where nobody is known to have written"))?;
        Ok(Step::done(&[Action::SendNoBase { to, last, stamp: self.last_stamp }]))
    }

    fn install(&mut self, writers: &mut [Seen], applied: &[u32]) -> Step {
        self.mode = Mode::Present;
        for (seen, &applied) in writers.iter_mut().zip(applied) {
            seen.applied = applied;
        }
        Step::done(&[Action::Install, Action::Wake])
    }

    fn no_base(&mut self, last: NodeId, stamp: u32) -> Step {
        self.mode = Mode::Absent;
        self.wrote(last, stamp);
        Step::done(&[Action::Wake])
    }

    /// The last answer settles what is owed first: a diff of this node must not lose what another's overwrites.
    fn arrived(&mut self, writers: &mut [Seen], from: NodeId, upto: u32) -> Step {
        let seen = &mut writers[usize::from(from.0)];
        seen.coming = seen.coming.max(upto);
        self.awaiting -= 1;
        if self.awaiting > 0 {
            return Step::done(&[]);
        }
        for seen in writers.iter_mut().filter(|seen| seen.coming > 0) {
            seen.applied = seen.applied.max(seen.coming);
            seen.coming = 0;
        }
        self.mode = Mode::Present;
        let mut step = self.settle();
        step.actions.push(Action::Apply { twin: self.written });
        step.actions.push(Action::Wake);
        step
    }

    /// Others will count on the last writer's copy. A copy that this node has written in the open interval, or in one that is not collected,
    /// must not be dropped: a thread outside the barrier ends intervals meanwhile, and others will ask for their diffs.
    fn keep(&mut self, me: NodeId, writers: &[Seen], upto: &[u32]) -> Step {
        let own = usize::from(me.0);
        let needed = self.last() == Some(me) || self.written || writers[own].noticed > upto[own];
        if needed && !Self::is_complete(writers) { self.ask(writers) } else { Step::done(&[]) }
    }

    /// A copy that lacks something collected can never be completed any more.
    fn collect(
        &mut self,
        me: NodeId,
        writers: &[Seen],
        (from, index): (NodeId, u32),
        upto: &[u32],
    ) -> Result<Step, Impossible> {
        // What is noticed may be later than what is collected.
        let lost = index > writers[usize::from(from.0)].applied;
        let own = usize::from(me.0);
        if lost && (self.written || self.mode == Mode::AskingDiffs || self.owed > upto[own]) {
            return Err(self.impossible("Collect of what a copy still needs"));
        }
        let mut step = Step::done(&[]);
        // While the open interval writes, the twin is older than what is owed, and a page that is sent must not be without that.
        if self.owed > 0 && self.owed <= upto[own] && !self.written {
            self.owed = 0;
            self.has_twin = false;
            step.actions.push(Action::DropTwin);
        }
        if lost {
            self.mode = Mode::Absent;
        }
        Ok(step)
    }
}

const fn name_of(event: Event<'_>) -> &'static str {
    match event {
        Event::Fault { .. } => "Fault",
        Event::Close { .. } => "Close",
        Event::Notice { .. } => "Notice",
        Event::AskDiffs { .. } => "AskDiffs",
        Event::AskBase { .. } => "AskBase",
        Event::Base { .. } => "Base",
        Event::NoBase { .. } => "NoBase",
        Event::Diffs { .. } => "Diffs",
        Event::Keep { .. } => "Keep",
        Event::Collect { .. } => "Collect",
    }
}
