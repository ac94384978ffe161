//! What a driver gives to the engine.

use finespun_protocol::page::{Actions, Buffers, Contents, Effect, Event, Outcome, Place, Protocol, Time};
use finespun_types::{NodeId, NodeSet};

use crate::limits::Limit;
use crate::routes::Route;

/// The words of a world's protocol.
type Msg<W> = <<W as World>::Protocol as Protocol>::Msg;
type Impossible<W> = <<W as World>::Protocol as Protocol>::Impossible;

/// What a table answers, beside the actions that it writes.
pub type Answer<W> = Result<Outcome, Impossible<W>>;

/// What a table is asked. Which table: the kind; whose: the node in it.
#[derive(Clone, Copy, Debug)]
pub enum Question<M> {
    /// The copy of the node `place.me`.
    Copy {
        /// The node, and what the unit's address says there.
        place: Place,
        /// A fresh tick of its clock.
        now: Time,
        /// What it may know of the home's broadcast buffers.
        buffers: Buffers,
        /// What happens to it.
        event: Event<M>,
    },
    /// The home's directory entry.
    Home {
        /// The home.
        home: NodeId,
        /// Its broadcast buffers.
        buffers: Buffers,
        /// Who sent the message.
        from: NodeId,
        /// The message.
        msg: M,
    },
    /// The manager's entry.
    Manager {
        /// The manager.
        manager: NodeId,
        /// Who sent the message.
        from: NodeId,
        /// The message.
        msg: M,
    },
}

impl<M: Copy> Question<M> {
    /// Asks the table, which writes its actions to the end of `out`: the only place where one is called.
    #[inline(always)]
    pub fn put<W>(self, world: &mut W, out: &mut Actions<M>) -> Answer<W>
    where
        W: World + ?Sized,
        W::Protocol: Protocol<Msg = M>,
    {
        match self {
            Self::Copy { place, now, buffers, event } => {
                W::Protocol::on_unit_seeing(world.copy(place.me), buffers, place, now, event, out)
            }
            Self::Home { home, buffers, from, msg } => {
                W::Protocol::on_directory_seeing(world.directory(home), buffers, home, from, msg, out)
            }
            Self::Manager { manager, from, msg } => W::Protocol::on_manager(world.manager(manager), from, msg, out),
        }
    }

    /// What happens, in the words of the copy's table.
    #[must_use]
    pub const fn event(&self) -> Event<M> {
        match *self {
            Self::Copy { event, .. } => event,
            Self::Home { from, msg, .. } | Self::Manager { from, msg, .. } => Event::Recv { from, msg },
        }
    }
}

/// One unit, at every node that the driver reaches. All is called under the lock of (node, unit), except [`Self::lock`] itself and
/// [`Self::route`].
pub trait World {
    /// The tables.
    type Protocol: Protocol;
    /// What goes with a message. It stays valid until the transaction is over.
    type Payload: Copy;
    /// No payload.
    const NOTHING: Self::Payload;

    /// What the unit's address says, at a node.
    fn place(&self, node: NodeId) -> Place;
    /// How a message reaches another node.
    fn route(&self, msg: Msg<Self>) -> Route;

    /// Takes the unit's lock at a node; false if this driver has it already. A driver that cannot wait here asks
    /// [`Transaction::wants`](crate::Transaction::wants) before it steps.
    fn lock(&mut self, node: NodeId) -> bool;
    /// Gives it back.
    fn unlock(&mut self, node: NodeId);

    /// A fresh tick of the node's clock.
    fn tick(&mut self, node: NodeId) -> Time;
    /// The node's copy.
    fn copy(&mut self, node: NodeId) -> &mut <Self::Protocol as Protocol>::Unit;
    /// The home's entry.
    fn directory(&mut self, home: NodeId) -> &mut <Self::Protocol as Protocol>::Directory;
    /// The manager's entry.
    fn manager(&mut self, manager: NodeId) -> &mut <Self::Protocol as Protocol>::Manager;

    /// Performs an action at a node. `received` is what came with the message that the action answers.
    fn perform(&mut self, node: NodeId, effect: Effect, received: Self::Payload);
    /// What a node sends to these. `received` is what came. `None`: it would be a diff, and the diff is empty.
    fn contents(
        &mut self,
        node: NodeId,
        to: NodeSet,
        contents: Contents,
        received: Self::Payload,
    ) -> Option<Self::Payload>;
    /// Sends a message.
    fn send(&mut self, from: NodeId, to: NodeId, msg: Msg<Self>, payload: Self::Payload);
    /// A message goes to another node without being sent: counted, or priced.
    fn pass(&mut self, _from: NodeId, _to: NodeId, _msg: Msg<Self>, _payload: Self::Payload) {}

    /// Of the home's broadcast buffers, what the node's copy may know. Only where [`Protocol::BROADCASTS`].
    fn hint(&mut self, _node: NodeId) -> Buffers {
        Buffers::default()
    }
    /// Of its own broadcast buffers, what a home knows; and the page from one instead of what came, if the message wants that. Only
    /// where [`Protocol::BROADCASTS`].
    fn buffers(&mut self, _home: NodeId, _msg: Msg<Self>, came: Self::Payload) -> (Buffers, Self::Payload) {
        (Buffers::default(), came)
    }

    /// A table has no row: a bug of ours. Says how the presenter goes on, if at all.
    fn impossible(&mut self, node: NodeId, what: &Impossible<Self>) -> Outcome;
    /// A list is full: a bug of ours. What does not fit is left out, if this returns.
    #[cold]
    fn overflow(&mut self, limit: Limit) {
        panic!("{limit}");
    }
    /// Asks a table. Written anew by a checker, which seeds bugs around the tables and traces their answers.
    #[inline(always)]
    fn ask(&mut self, question: Question<Msg<Self>>, out: &mut Actions<Msg<Self>>) -> Answer<Self> {
        question.put(self, out)
    }
}
