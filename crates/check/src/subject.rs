//! What the checker must know of a protocol besides its tables.

use std::fmt::Debug;

use finespun_protocol::cashmere::variants::Way;
use finespun_protocol::page::{Action, Buffers, Event, Message, Place, Protocol, Step, Time};
use finespun_types::{NodeId, NodeSet, ViewId};

use crate::model::{Copy, Processor};

/// What a load must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Release consistency: in a program without data races the last store; with races any outcome that is listed.
    Release,
    /// Sequential consistency: the last store in the order of execution, races or not.
    Sequential,
}

/// A protocol that can be checked.
pub trait Subject: Protocol {
    /// Its seeded bugs.
    type Bug: Sabotage<Self>;

    /// What its loads return.
    const MODEL: Model;

    /// Its kind, for outcomes that litmus tests allow only under some: `lazy`, `update` or `sequential`.
    const KIND: &'static str = "lazy";

    /// A message as it stands in a trace line, with the node at its other end.
    fn message(other: NodeId, msg: Self::Msg) -> String;

    /// A copy's state as it stands in a trace line.
    fn state(unit: &Self::Unit) -> String;

    /// A directory entry, likewise.
    fn entry(directory: &Self::Directory) -> String;

    /// Checks the protocol's named sentences about one unit: its copies, by node, and the directory entry. `in_flight`: a message
    /// about it is under way, or an action not yet performed.
    ///
    /// # Errors
    /// The first sentence that does not hold.
    fn check(copies: &[Self::Unit], directory: &Self::Directory, in_flight: bool) -> Result<(), &'static str>;

    /// Checks what must hold between a directory entry and a broadcast buffer that holds the unit.
    ///
    /// # Errors
    /// The sentence that does not hold.
    fn check_buffered(_directory: &Self::Directory) -> Result<(), &'static str> {
        Ok(())
    }

    /// Makes one node's states equal that can never be told apart: the tables only compare times, so only their order counts, and
    /// only among those that are compared.
    fn make_canonical(copies: &mut [Copy<Self::Unit>], processors: &mut [Processor]);

    /// The same for a directory entry that tells its node's intervals apart; they all start again at [`INTERVAL_BASE`].
    fn make_entry_canonical(_directory: &mut Self::Directory, _interval: u32) {}

    /// Is the unit on the view's dirty list, as far as the table knows?
    fn is_dirty(unit: &Self::Unit, view: ViewId) -> bool;

    /// Is the unit on the view's list of write notices, as far as the table knows?
    fn is_noticed(unit: &Self::Unit, view: ViewId) -> bool;

    /// The node whose frame has every store when all have released.
    fn master(copies: &[Self::Unit], directory: &Self::Directory) -> Option<NodeId>;

    /// [`Self::check`] with the directory entries of all nodes; unless homes move, only the home's is not empty.
    ///
    /// # Errors
    /// As there.
    fn check_all(copies: &[Self::Unit], directories: &[Self::Directory], in_flight: bool) -> Result<(), &'static str> {
        Self::check(copies, &only_one(directories), in_flight)
    }

    /// Has the copy a twin? Asked where an update goes to frame and twin, and a page comes from either.
    fn has_twin(unit: &Self::Unit) -> bool;

    /// The nodes whose frames have every store when all have released: all that have copies, where copies are never old.
    fn masters(copies: &[Self::Unit], directories: &[Self::Directory]) -> NodeSet {
        Self::master_of_all(copies, directories).map_or(NodeSet::EMPTY, NodeSet::only)
    }

    /// [`Self::master`], likewise.
    fn master_of_all(copies: &[Self::Unit], directories: &[Self::Directory]) -> Option<NodeId> {
        Self::master(copies, &only_one(directories))
    }
}

/// The entry that is not empty, if one is.
fn only_one<D: std::marker::Copy + Default + Eq>(directories: &[D]) -> D {
    directories.iter().copied().find(|entry| *entry != D::default()).unwrap_or_default()
}

/// Where a node's intervals start in a canonical state.
pub const INTERVAL_BASE: u32 = 2;

/// A wrong thing that a driver of any protocol could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// Messages between two nodes overtake each other.
    UnorderedChannels,
    /// A release tells others before its flushes are done.
    ReleaseTooEarly,
    /// A signal handler of the program runs while a release waits.
    HandlerInRelease,
    /// An acquire goes on without obeying its notices.
    AcquireWithoutNotices,
    /// A flush is skipped though the view has other threads that may have stored since.
    SkipWithThreads,
    /// A flush leaves the twin as it was while other views go on writing.
    TwinNotRefreshed,
    /// An update of another node goes to the frame and not to the twin.
    UpdateMissesTwin,
    /// A flush refreshes the twin by reading the frame once more.
    TwinRefreshedBySecondRead,
    /// A page is taken from a broadcast buffer that holds another unit by now.
    BufferOfAnyUnit,
    /// A view guesses while another thread of it acquires.
    GuessBesideAcquire,
    /// A guess looks at the home before it knows its name, and asks the manager over the home's lock.
    ManagerOverHome,
    /// A guess looks at the home that the address fixes, though the home has moved since.
    LooksWhereHomeWas,
    /// An acquire that fetches a page anew instead of closing it does not wait for it.
    RefreshNotAwaited,
    /// A page that is not fetched anew is not closed either.
    RefusedStaysOpen,
    /// A page that is fetched anew keeps its notice.
    RefreshWithoutInvalidate,
    /// A page that a view guesses to write is opened without a word to the tables.
    OpensUnasked,
}

/// The seeded bugs of a protocol. The tables carry no switches; the checker's driver alters what goes into them and
/// what comes out.
pub trait Sabotage<P: Subject>: Clone + std::marker::Copy + Eq + Debug + 'static {
    /// What the driver itself does wrong.
    fn quirk(self) -> Option<Quirk> {
        None
    }

    /// The actions as this bug would have them, of the handler for `event`.
    fn alter(self, _event: Event<P::Msg>, _actions: &mut Vec<Action<P::Msg>>) {}

    /// The copy's table, with what is wrong around it.
    ///
    /// # Errors
    /// The table's.
    fn on_unit(
        self,
        unit: &mut P::Unit,
        place: Place,
        now: Time,
        event: Event<P::Msg>,
    ) -> Result<Step<P::Msg>, P::Impossible> {
        Step::of(|out| P::on_unit(unit, place, now, event, out))
    }

    /// The home's table, with what is wrong around it.
    ///
    /// # Errors
    /// The table's.
    fn on_directory(
        self,
        directory: &mut P::Directory,
        home: NodeId,
        from: NodeId,
        msg: P::Msg,
    ) -> Result<Step<P::Msg>, P::Impossible> {
        Step::of(|out| P::on_directory(directory, home, from, msg, out))
    }

    /// The same for a protocol that has broadcast buffers.
    ///
    /// # Errors
    /// The table's.
    fn on_unit_seeing(
        self,
        unit: &mut P::Unit,
        _buffers: Buffers,
        place: Place,
        now: Time,
        event: Event<P::Msg>,
    ) -> Result<Step<P::Msg>, P::Impossible> {
        self.on_unit(unit, place, now, event)
    }

    /// Likewise.
    ///
    /// # Errors
    /// The table's.
    fn on_directory_seeing(
        self,
        directory: &mut P::Directory,
        _buffers: Buffers,
        home: NodeId,
        from: NodeId,
        msg: P::Msg,
    ) -> Result<Step<P::Msg>, P::Impossible> {
        self.on_directory(directory, home, from, msg)
    }

    /// The way of a message, if it is a wrong one.
    fn way(self, _msg: P::Msg) -> Option<Way> {
        None
    }

    /// Is the message put aside until its sender holds no lock?
    fn is_between_equals(self, msg: P::Msg) -> bool {
        msg.is_between_equals()
    }

    /// The home applies a diff late, as if it came once more with this message.
    fn late_diff(self) -> Option<P::Msg> {
        None
    }

    /// The home drops a broadcast buffer late, as if it came once more with this message.
    fn late_drop(self) -> Option<P::Msg> {
        None
    }
}
