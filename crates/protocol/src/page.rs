//! What all page protocols have in common: what happens to a node's copy of a unit, what a table asks its driver to
//! do, and the roles between which messages go. `M` is a protocol's own messages.
//!
//! Each [`Action`] is the runtime's unit of work, the simulator's unit of price and the reports' unit of counting.

use core::convert::Infallible;
use core::fmt::Debug;
use core::hash::Hash;

use finespun_types::{Access, Counter, NodeId, NodeSet, ViewId, ViewSet};

/// A moment of a node's logical clock, which ticks at every protocol event of the node [Cashmere05 §2.1]. 0 is before all.
pub type Time = u64;

/// Where a table runs: the node, and what the unit's address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node.
    pub me: NodeId,
    /// The node that decides the home by first touch.
    pub manager: NodeId,
    /// The home, where the address fixes it.
    pub fixed_home: Option<NodeId>,
}

/// What happens to a node's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event<M> {
    /// A load of this view faulted.
    ReadFault {
        /// Whose.
        view: ViewId,
        /// When the fault was first presented. Data asked for before then saved it a fetch.
        since: Time,
    },
    /// A store of this view faulted.
    WriteFault {
        /// Whose.
        view: ViewId,
        /// When the fault was first presented.
        since: Time,
    },
    /// A release of this view flushes the unit, which was on its dirty list.
    Flush {
        /// Whose.
        view: ViewId,
        /// When the release began, if a flush begun since then covers all the view's writes; [`Time::MAX`] for a view
        /// whose other threads may have written meanwhile.
        since: Time,
        /// The view will write the unit again before its next release, the driver expects: let it keep the right, where the
        /// protocol knows how ([`Protocol::KEEPS`]). Wrong expectations cost time, nothing else.
        keep: bool,
    },
    /// The diff was empty: the flush that began is already complete.
    NothingChanged,
    /// An acquire of this view obeys the write notice, which was on its list.
    Invalidate {
        /// Whose.
        view: ViewId,
    },
    /// A message arrived.
    Recv {
        /// From which node.
        from: NodeId,
        /// The message.
        msg: M,
    },
}

/// An event of a node's own views: the same words in every protocol.
pub type Demand = Event<Infallible>;

impl Demand {
    /// The event in the words of a protocol.
    #[must_use]
    pub const fn of<M>(self) -> Event<M> {
        match self {
            Self::ReadFault { view, since } => Event::ReadFault { view, since },
            Self::WriteFault { view, since } => Event::WriteFault { view, since },
            Self::Flush { view, since, keep } => Event::Flush { view, since, keep },
            Self::NothingChanged => Event::NothingChanged,
            Self::Invalidate { view } => Event::Invalidate { view },
            Self::Recv { msg, .. } => match msg {},
        }
    }
}

/// What the driver attaches to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contents {
    /// The words of the message alone.
    Nothing,
    /// The node's frame. To the node itself nothing: its frame is already there.
    Frame,
    /// The node's twin, made just before: a snapshot that the frame's writers cannot change any more.
    Twin,
    /// The diff of the frame against the twin. With `refresh` the twin becomes what was sent, for views that go on
    /// writing; without it the twin is dropped. Empty: nothing is sent, and [`Event::NothingChanged`] comes next.
    Diff {
        /// Keep the twin, refreshed.
        refresh: bool,
    },
    /// What the node has released of the page: its twin, where it has one, else its frame. A store that is not released yet may be
    /// taken back before the release, and then no diff tells of it. To the node itself nothing.
    Released,
    /// What came with the message that is being handled, passed on.
    Received,
}

/// What the driver must do, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action<M> {
    /// Send `msg` to each of `to`.
    Send {
        /// The receivers.
        to: NodeSet,
        /// The message.
        msg: M,
        /// What goes with it.
        contents: Contents,
    },
    /// Copy the page that came with the message over the frame.
    Install,
    /// Two-way diff: write the bytes in which the page that came differs from the twin to both frame and twin
    /// [Cashmere05 §2.1].
    Merge,
    /// Apply the diff that came with the message to the frame, and to the twin if there is one, so that it does not come
    /// back as a change of this node.
    ApplyUpdate,
    /// Copy the frame to a new twin.
    MakeTwin,
    /// Forget the twin: every view has flushed.
    DropTwin,
    /// Change what a view may do.
    Protect {
        /// Whose mapping. Always the view that runs the event: nobody can change another's.
        view: ViewId,
        /// Its rights from now on.
        access: Access,
    },
    /// Put the unit on these views' dirty lists.
    ListDirty(ViewSet),
    /// Put the unit on these views' lists of write notices.
    ListNotice(ViewSet),
    /// The flush that this view began is complete: all sharers have the notice.
    FlushDone(ViewId),
    /// Let the node's waiting processors look again.
    Wake,
    /// Nothing to do; the timestamps saved a fetch. Counted.
    FetchSkipped,
    /// Nothing to do; the timestamps saved a flush. Counted.
    FlushSkipped,
    /// Nothing to do; the view goes on writing without a fault. Counted.
    RightKept,
    /// Nothing to do; it had not written meanwhile. Counted.
    KeptInVain,
    /// Nothing to do; the unit went into exclusive mode. Counted.
    EnteredExclusive,
    /// Copy what the node has released of the page ([`Contents::Released`]) to a broadcast buffer, which all nodes can read; the oldest
    /// one is given up if none is free.
    Broadcast,
    /// The broadcast buffer that holds the unit holds it no more.
    DropBuffer,
    /// Nothing to do; this node asked for the home and has it. Counted.
    HomeMoved,
    /// Nothing to do; this node asked for the home in vain. Counted.
    HomeKept,
}

/// Any action but a message: what a driver does to one node's copy, its mappings and its lists. Like [`Demand`]: the compiler knows that
/// no [`Action::Send`] is among them.
pub type Effect = Action<Infallible>;

impl<M> Action<M> {
    /// The action in the words of a protocol that has more messages.
    #[must_use]
    pub fn map<N>(self, lift: impl Fn(M) -> N) -> Action<N> {
        let lifted = |to, msg, contents| Ok::<_, Infallible>(Action::Send { to, msg: lift(msg), contents });
        match self.unless_sent(lifted) {
            Ok(action) => action,
        }
    }

    /// The action as an effect.
    ///
    /// # Errors
    /// It is a message: to whom, its words, what goes with it.
    #[inline(always)]
    pub fn effect(self) -> Result<Effect, (NodeSet, M, Contents)> {
        self.unless_sent(|to, msg, contents| Err((to, msg, contents)))
    }

    /// The same action in other words; what becomes of a message is told by `sent`.
    #[inline(always)]
    fn unless_sent<N, E>(
        self,
        sent: impl FnOnce(NodeSet, M, Contents) -> Result<Action<N>, E>,
    ) -> Result<Action<N>, E> {
        Ok(match self {
            Self::Send { to, msg, contents } => return sent(to, msg, contents),
            Self::Install => Action::Install,
            Self::Merge => Action::Merge,
            Self::ApplyUpdate => Action::ApplyUpdate,
            Self::MakeTwin => Action::MakeTwin,
            Self::DropTwin => Action::DropTwin,
            Self::Protect { view, access } => Action::Protect { view, access },
            Self::ListDirty(views) => Action::ListDirty(views),
            Self::ListNotice(views) => Action::ListNotice(views),
            Self::FlushDone(view) => Action::FlushDone(view),
            Self::Wake => Action::Wake,
            Self::FetchSkipped => Action::FetchSkipped,
            Self::FlushSkipped => Action::FlushSkipped,
            Self::RightKept => Action::RightKept,
            Self::KeptInVain => Action::KeptInVain,
            Self::EnteredExclusive => Action::EnteredExclusive,
            Self::Broadcast => Action::Broadcast,
            Self::DropBuffer => Action::DropBuffer,
            Self::HomeMoved => Action::HomeMoved,
            Self::HomeKept => Action::HomeKept,
        })
    }
}

/// So many actions fit into a list: those that answer one event, behind what is left of the events that brought it about.
pub const ACTIONS_MAX: usize = 12;

/// A list of actions without allocation. A table writes its own behind those that are there; a driver performs them in order.
#[derive(Clone, Copy, Debug)]
pub struct Actions<M> {
    list: [Action<M>; ACTIONS_MAX],
    len: u8,
    lost: bool,
}

impl<M: Copy> Actions<M> {
    /// No action.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        // Written one by one: a constant would be copied, with all that is not there.
        Self { list: core::array::from_fn(|_| Action::Wake), len: 0, lost: false }
    }

    /// These actions, in order.
    #[must_use]
    pub fn of(actions: &[Action<M>]) -> Self {
        let mut all = Self::new();
        all.extend(actions);
        all
    }

    /// Adds one at the end.
    #[inline(always)]
    pub fn push(&mut self, action: Action<M>) {
        match self.list.get_mut(usize::from(self.len)) {
            Some(place) => {
                *place = action;
                self.len += 1;
            }
            None => self.lost = true,
        }
    }

    /// Adds these at the end.
    #[inline(always)]
    pub fn extend(&mut self, actions: &[Action<M>]) {
        for &action in actions {
            self.push(action);
        }
    }

    /// Adds these, and nothing is awaited.
    #[inline(always)]
    pub fn done(&mut self, actions: &[Action<M>]) -> Outcome {
        self.extend(actions);
        Outcome::Done
    }

    /// Adds these, and the presenter waits.
    #[inline(always)]
    pub fn wait(&mut self, actions: &[Action<M>]) -> Outcome {
        self.extend(actions);
        Outcome::Wait
    }

    /// Adds those of a protocol with fewer messages, in the words of this one.
    #[inline]
    pub fn lift<N: Copy>(&mut self, actions: &Actions<N>, lift: impl Fn(N) -> M) {
        for action in actions.as_slice() {
            self.push(action.map(&lift));
        }
    }

    /// The actions, in order.
    #[inline(always)]
    #[must_use]
    pub fn as_slice(&self) -> &[Action<M>] {
        &self.list[..usize::from(self.len)]
    }

    /// How many there are.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Is there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the last one.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Action<M>> {
        self.len = self.len.checked_sub(1)?;
        self.list.get(usize::from(self.len)).copied()
    }

    /// Forgets all behind the first `len`.
    #[inline(always)]
    pub const fn truncate(&mut self, len: usize) {
        if len < self.len as usize {
            self.len = len as u8;
        }
    }

    /// Turns the order of all behind the first `len`: what was written first is then taken first by [`Self::pop`].
    #[inline(always)]
    pub fn reverse_behind(&mut self, len: usize) {
        if let Some(own) = self.list.get_mut(len..usize::from(self.len)) {
            own.reverse();
        }
    }

    /// Was there one more than fits? It is not in the list.
    #[inline(always)]
    #[must_use]
    pub const fn has_lost(&self) -> bool {
        self.lost
    }
}

impl<M: Copy> Default for Actions<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the presenter of an event stands after the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Finished: a fault may be retried by the hardware, a flush needs no more from its view (its completion is
    /// announced by [`Action::FlushDone`] if one began).
    Done,
    /// A flush began and is under way; [`Action::FlushDone`] tells the end.
    Begun,
    /// Present the same event again when the node was woken, or at once if the actions already brought the answer.
    Wait,
}

/// A table's answer by itself, where it is not part of a transaction: for tests, and for drivers that look at it.
#[derive(Clone, Copy, Debug)]
pub struct Step<M> {
    /// For the presenter of the event.
    pub outcome: Outcome,
    /// For the driver.
    pub actions: Actions<M>,
}

impl<M: Copy> Step<M> {
    /// The answer of this table.
    ///
    /// # Errors
    /// The table's.
    pub fn of<E>(table: impl FnOnce(&mut Actions<M>) -> Result<Outcome, E>) -> Result<Self, E> {
        let mut actions = Actions::new();
        let outcome = table(&mut actions)?;
        Ok(Self { outcome, actions })
    }
}

/// The words of `msg` to one node.
pub(crate) const fn send<M>(to: NodeId, msg: M) -> Action<M> {
    Action::Send { to: NodeSet::only(to), msg, contents: Contents::Nothing }
}

/// `msg` to one node, with `contents`.
pub(crate) const fn send_with<M>(to: NodeId, msg: M, contents: Contents) -> Action<M> {
    Action::Send { to: NodeSet::only(to), msg, contents }
}

/// What a view may do, where these views have a mapping and these a writable one.
pub(crate) fn access(mapped: ViewSet, writers: ViewSet, view: ViewId) -> Access {
    match (mapped.contains(view), writers.contains(view)) {
        (false, _) => Access::None,
        (true, false) => Access::Read,
        (true, true) => Access::Write,
    }
}

/// Who a message is for: which of a unit's tables at the receiver takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The node that knows the home.
    Manager,
    /// The home's directory entry.
    Home,
    /// A node's copy.
    Copy,
}

/// Where a node's own dirty list and count of open flushes are kept: see [`Protocol::RELEASES_NODE`].
pub const NODE: ViewId = ViewId(0);

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Pages and diffs, and the requests for them.
    Data,
    /// Homes, sharing sets, write notices.
    Metadata,
}

/// The messages of a protocol.
pub trait Message: Copy + Eq + Ord + Hash + Debug + 'static {
    /// Who it is for.
    fn role(self) -> Role;
    /// What it is about.
    fn class(self) -> Class;
    /// Does it go between copies of equal standing? Such a message waits until its sender holds no lock, where the
    /// sender runs the receiver's table itself: two that send it to each other would block each other.
    fn is_between_equals(self) -> bool;
    /// Does the driver attach the page that a broadcast buffer of the receiver holds, if one does?
    fn wants_buffer(self) -> bool {
        false
    }
}

/// A message that real nodes send each other.
pub trait Carried: Message {
    /// What is counted when it crosses between nodes, beside messages and bytes.
    fn counter(self) -> Option<Counter>;
    /// As a number and a word.
    fn words(self) -> (u8, u64);
    /// The message of such words; `None` if it is none of this protocol's.
    fn of_words(number: u8, word: u64) -> Option<Self>;
}

/// What a driver sees of a home's broadcast buffers, for a protocol that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// A buffer holds the unit. To the home's table the truth, under the unit's lock there; to a copy's table a hint.
    pub held: bool,
    /// The home's interval, counted by its releases.
    pub interval: u32,
}

/// What a view's read fault would mean that has not happened: see [`Protocol::ahead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Not now, or never under this protocol.
    No,
    /// Nothing: the view has the page mapped.
    Mapped,
    /// The node's copy would be mapped as it is.
    HasCopy,
    /// The page would come from the home, as it did before.
    Again,
    /// The page would come for the first time.
    First,
}

/// A home-based page protocol: a copy at every node, a directory entry at the home, and a manager that knows the home.
/// All states are plain data whose all-zero form is a unit that nobody has touched.
pub trait Protocol: Copy + Debug + Eq + Hash + 'static {
    /// Its messages.
    type Msg: Message;
    /// A node's copy of a unit.
    type Unit: Copy + Default + Eq + Hash + Debug;
    /// The home's entry of a unit.
    type Directory: Copy + Default + Eq + Hash + Debug;
    /// The manager's entry of a unit.
    type Manager: Copy + Default + Eq + Hash + Debug;
    /// A pair of state and event without a row: a bug of ours, never bad input.
    type Impossible: Debug;

    /// The dirty list is the node's, not a view's: a release by any view flushes all that the node has written. It is kept as
    /// the list of the node's first view, [`NODE`]; the node's releases exclude each other.
    const RELEASES_NODE: bool = false;
    /// What [`Action::ListNotice`] lists is done at once, by a thread of the view beside its program, and not at the
    /// view's next acquire.
    const REVOKES: bool = false;

    /// A release may leave a view the right to write: see [`Event::Flush`].
    const KEEPS: bool = false;
    /// May a driver present read faults that have not happened yet, so that the page is there when they would? They are faults like any
    /// other to the tables. Where a copy is for ever, or is asked back while it is used, a guess would cost too much.
    const READS_AHEAD: bool = false;

    /// Has it broadcast buffers? Then its driver calls the two tables with [`Buffers`].
    const BROADCASTS: bool = false;

    /// The copy's table. `now` is a fresh tick of the node's clock. Its actions go to the end of `out`.
    ///
    /// # Errors
    /// When the pair cannot occur.
    fn on_unit(
        unit: &mut Self::Unit,
        place: Place,
        now: Time,
        event: Event<Self::Msg>,
        out: &mut Actions<Self::Msg>,
    ) -> Result<Outcome, Self::Impossible>;

    /// The home's table. `home` is the node that the entry stands at.
    ///
    /// # Errors
    /// When the pair cannot occur.
    fn on_directory(
        directory: &mut Self::Directory,
        home: NodeId,
        from: NodeId,
        msg: Self::Msg,
        out: &mut Actions<Self::Msg>,
    ) -> Result<Outcome, Self::Impossible>;

    /// The manager's table.
    ///
    /// # Errors
    /// When the message is not for it.
    fn on_manager(
        manager: &mut Self::Manager,
        from: NodeId,
        msg: Self::Msg,
        out: &mut Actions<Self::Msg>,
    ) -> Result<Outcome, Self::Impossible>;

    /// The home, if the node knows it.
    fn home(unit: &Self::Unit) -> Option<NodeId>;
    /// The home, if the manager knows it.
    fn managed_home(manager: &Self::Manager) -> Option<NodeId>;
    /// What a view may do with the unit, by the books.
    fn access(unit: &Self::Unit, view: ViewId) -> Access;
    /// What a read fault of the view would mean now. Only where [`Self::READS_AHEAD`].
    fn ahead(_unit: &Self::Unit, _place: Place, _view: ViewId) -> Ahead {
        Ahead::No
    }
    /// By the home's entry: do others read the page, so that one reader more takes nothing from anybody? Not while a node has it
    /// exclusively, and not before somebody has used it.
    fn is_read(_directory: &Self::Directory) -> bool {
        false
    }
    /// By the home's entry: has a node the page exclusively? Its mode ends when another one reads the page.
    fn is_exclusive(_directory: &Self::Directory) -> bool {
        false
    }
    /// [`Self::on_unit`], where the driver sees broadcast buffers.
    ///
    /// # Errors
    /// As there.
    fn on_unit_seeing(
        unit: &mut Self::Unit,
        _buffers: Buffers,
        place: Place,
        now: Time,
        event: Event<Self::Msg>,
        out: &mut Actions<Self::Msg>,
    ) -> Result<Outcome, Self::Impossible> {
        Self::on_unit(unit, place, now, event, out)
    }

    /// [`Self::on_directory`], where the driver sees broadcast buffers.
    ///
    /// # Errors
    /// As there.
    fn on_directory_seeing(
        directory: &mut Self::Directory,
        _buffers: Buffers,
        home: NodeId,
        from: NodeId,
        msg: Self::Msg,
        out: &mut Actions<Self::Msg>,
    ) -> Result<Outcome, Self::Impossible> {
        Self::on_directory(directory, home, from, msg, out)
    }
}
