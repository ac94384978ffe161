//! One event of one unit, with all that it brings about where this driver reaches.
//!
//! A transaction is *inside* while a handler runs, and then holds locks. When the last handler has ended, only messages put aside are
//! left; each is handled under locks of its own. When none is left, the transaction is *over*. A driver may present again before that.
//!
//! ```text
//!   present --> lock, table, actions on the stack --> step ... step --> End of the handler: unlock
//!                     |                                |
//!                     |                                +-- a message inside: deliver --> lock, table, its actions above
//!                     |                                +-- a message to equals: put aside; handled when no handler runs
//!                     +-- what the table answered is the outcome
//! ```

use core::hash::{Hash, Hasher};
use core::mem;

use finespun_protocol::page::{Action, Actions, Buffers, Contents, Event, Message, Outcome, Protocol, Role};
use finespun_types::{NodeId, NodeSet};

use crate::later::Later;
use crate::limits::{HANDLERS_MAX, Limit};
use crate::routes::Route;
use crate::world::{Answer, Question, World};

#[cfg(test)]
mod tests;

/// A handler that runs. It holds the lock of (node, unit) to its end.
#[derive(Clone, Copy, Debug, Hash)]
struct Handler<L> {
    node: NodeId,
    /// Who sent what it answers.
    from: NodeId,
    /// It took the lock, and gives it back.
    locked: bool,
    /// Its actions stand above this many.
    floor: u8,
    /// What came with the message.
    payload: L,
}

/// What the next step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a, M> {
    /// An action of the handler that runs at this node.
    Act(NodeId, &'a Action<M>),
    /// The handler at this node ends.
    End(NodeId),
    /// A message that was put aside is handled, from this node at that one.
    Later(NodeId, NodeId, M),
    /// Nothing: all is done.
    Nothing,
}

/// A transaction on one unit.
#[derive(Clone, Debug)]
pub struct Transaction<P: Protocol, L> {
    handlers: [Option<Handler<L>>; HANDLERS_MAX],
    depth: u8,
    /// What is left to do of all handlers: the innermost's above the others', the next one last.
    actions: Actions<P::Msg>,
    later: Later<P::Msg, L>,
    /// A flush was presented, and has made no diff yet.
    may_make_diff: bool,
}

impl<P: Protocol, L: Copy> Default for Transaction<P, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol, L: Copy> Transaction<P, L> {
    /// Nothing has happened.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        // Written one by one: a constant would be copied, with all that is not there.
        let handlers = core::array::from_fn(|_| None);
        Self { handlers, depth: 0, actions: Actions::new(), later: Later::new(), may_make_diff: false }
    }

    /// Does a handler run? If not, no lock is held: only messages put aside are left.
    #[inline]
    #[must_use]
    pub const fn is_inside(&self) -> bool {
        self.depth > 0
    }

    /// Is all done?
    #[inline]
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.depth == 0 && self.later.is_empty()
    }

    /// Does a handler run at this node?
    #[must_use]
    pub fn is_at(&self, node: NodeId) -> bool {
        self.handlers[..usize::from(self.depth)].iter().flatten().any(|handler| handler.node == node)
    }

    /// Who sent what the innermost handler answers.
    #[must_use]
    pub fn sender(&self) -> Option<NodeId> {
        self.handler().map(|handler| handler.from)
    }

    #[inline]
    fn handler(&self) -> Option<&Handler<L>> {
        self.handlers[usize::from(self.depth.checked_sub(1)?)].as_ref()
    }

    /// What the next step does.
    #[must_use]
    pub fn next(&self) -> Next<'_, P::Msg> {
        let Some(handler) = self.handler() else {
            return self.later.peek().map_or(Next::Nothing, |(from, to, msg, _)| Next::Later(from, to, msg));
        };
        match self.actions.as_slice() {
            [.., action] if self.actions.len() > usize::from(handler.floor) => Next::Act(handler.node, action),
            [] | [..] => Next::End(handler.node),
        }
    }

    /// Where the next step takes the unit's lock, if this driver has it not, with messages that go by such routes. A driver that cannot
    /// wait inside [`World::lock`] steps when it is free.
    #[must_use]
    pub fn wants(&self, route: impl FnOnce(P::Msg) -> Route) -> Option<NodeId> {
        match self.next() {
            Next::Act(_, &Action::Send { to, msg, .. }) if route(msg) == Route::Inside => to.iter().next(),
            Next::Later(_, to, _) => Some(to),
            Next::Act(..) | Next::End(_) | Next::Nothing => None,
        }
    }

    /// Runs the copy's table at a node for an event of the node's own, and begins its actions.
    #[inline]
    pub fn present<W>(&mut self, world: &mut W, node: NodeId, event: Event<P::Msg>) -> Outcome
    where
        W: World<Protocol = P, Payload = L>,
    {
        if !self.has_place(world) {
            return Outcome::Done;
        }
        self.may_make_diff = matches!(event, Event::Flush { .. });
        let locked = world.lock(node);
        let floor = self.actions.len();
        let answer = self.ask_copy(world, node, event);
        self.begin(world, Handler { node, from: node, locked, floor: floor as u8, payload: W::NOTHING }, answer)
    }

    /// Runs the table that a message is for, and begins its actions.
    #[inline(always)]
    pub fn deliver<W>(&mut self, world: &mut W, from: NodeId, to: NodeId, msg: P::Msg, payload: L)
    where
        W: World<Protocol = P, Payload = L>,
    {
        if !self.has_place(world) {
            return;
        }
        let mut handler = Handler { node: to, from, locked: world.lock(to), floor: self.actions.len() as u8, payload };
        let answer = match msg.role() {
            Role::Manager => world.ask(Question::Manager { manager: to, from, msg }, &mut self.actions),
            Role::Home => {
                let mut buffers = Buffers::default();
                if P::BROADCASTS {
                    (buffers, handler.payload) = world.buffers(to, msg, payload);
                }
                world.ask(Question::Home { home: to, buffers, from, msg }, &mut self.actions)
            }
            Role::Copy => self.ask_copy(world, to, Event::Recv { from, msg }),
        };
        self.begin(world, handler, answer);
    }

    /// Asks the copy's table at a node.
    #[inline(always)]
    fn ask_copy<W>(&mut self, world: &mut W, node: NodeId, event: Event<P::Msg>) -> Answer<W>
    where
        W: World<Protocol = P, Payload = L>,
    {
        let (place, now) = (world.place(node), world.tick(node));
        let buffers = if P::BROADCASTS { world.hint(node) } else { Buffers::default() };
        world.ask(Question::Copy { place, now, buffers, event }, &mut self.actions)
    }

    #[inline(always)]
    fn has_place<W>(&self, world: &mut W) -> bool
    where
        W: World<Protocol = P, Payload = L>,
    {
        let has = usize::from(self.depth) < HANDLERS_MAX;
        if !has {
            world.overflow(Limit::Handlers);
        }
        has
    }

    /// The table has answered: its actions stand behind the handler's floor.
    #[inline(always)]
    fn begin<W>(&mut self, world: &mut W, handler: Handler<L>, answer: Answer<W>) -> Outcome
    where
        W: World<Protocol = P, Payload = L>,
    {
        self.handlers[usize::from(self.depth)] = Some(handler);
        self.depth += 1;
        match answer {
            Ok(outcome) => {
                self.actions.reverse_behind(usize::from(handler.floor));
                self.assert_all_fit(world);
                outcome
            }
            Err(what) => {
                self.actions.truncate(usize::from(handler.floor));
                world.impossible(handler.node, &what)
            }
        }
    }

    #[inline(always)]
    fn assert_all_fit<W>(&self, world: &mut W)
    where
        W: World<Protocol = P, Payload = L>,
    {
        if self.actions.has_lost() {
            world.overflow(Limit::Actions);
        }
    }

    /// One step: an action, the end of a handler, or the beginning of what was put aside.
    #[inline(always)]
    pub fn step<W>(&mut self, world: &mut W)
    where
        W: World<Protocol = P, Payload = L>,
    {
        let Some(top) = self.depth.checked_sub(1) else { return self.begin_later(world) };
        let Some(handler) = &self.handlers[usize::from(top)] else { return };
        let node = handler.node;
        if self.actions.len() == usize::from(handler.floor) {
            if handler.locked {
                world.unlock(node);
            }
            self.depth = top;
            return;
        }
        let payload = handler.payload;
        let Some(action) = self.actions.pop() else { return };
        match action.effect() {
            Ok(effect) => world.perform(node, effect, payload),
            Err((to, msg, contents)) => self.send(world, node, to, msg, contents, payload),
        }
    }

    /// Begins to handle what was put aside.
    #[inline(never)]
    fn begin_later<W>(&mut self, world: &mut W)
    where
        W: World<Protocol = P, Payload = L>,
    {
        if let Some((from, to, msg, payload)) = self.later.next() {
            self.deliver(world, from, to, msg, payload.unwrap_or(W::NOTHING));
        }
    }

    /// Steps until no handler runs.
    #[inline]
    pub fn run<W>(&mut self, world: &mut W)
    where
        W: World<Protocol = P, Payload = L>,
    {
        while self.is_inside() {
            self.step(world);
        }
    }

    /// Steps until all is done.
    #[inline(never)]
    pub fn finish<W>(&mut self, world: &mut W)
    where
        W: World<Protocol = P, Payload = L>,
    {
        while !self.is_over() {
            self.step(world);
        }
    }

    /// One call from [`Self::step`], and most steps are sends: it stands there.
    #[inline(always)]
    fn send<W>(&mut self, world: &mut W, node: NodeId, to: NodeSet, msg: P::Msg, contents: Contents, received: L)
    where
        W: World<Protocol = P, Payload = L>,
    {
        if matches!(contents, Contents::Diff { .. }) && !mem::take(&mut self.may_make_diff) {
            return world.overflow(Limit::Diffs);
        }
        let Some(payload) = world.contents(node, to, contents, received) else {
            return self.find_no_change(world, node);
        };
        let at = match world.route(msg) {
            // One after the other: the next when this one's handler has ended.
            Route::Inside => {
                let Some(first) = to.iter().next() else { return };
                let left = to.without(first);
                if !left.is_empty() {
                    self.actions.push(Action::Send { to: left, msg, contents });
                    self.assert_all_fit(world);
                }
                if first != node {
                    world.pass(node, first, msg, payload);
                }
                first
            }
            Route::Later => {
                let others = to.without(node);
                others.iter().for_each(|to| world.pass(node, to, msg, payload));
                let payload = (contents != Contents::Nothing).then_some(payload);
                if !others.is_empty() && !self.later.put(node, others, msg, payload) {
                    world.overflow(Limit::Aside);
                }
                if !to.contains(node) {
                    return;
                }
                node
            }
            Route::Away => {
                to.without(node).iter().for_each(|to| world.send(node, to, msg, payload));
                if !to.contains(node) {
                    return;
                }
                node
            }
        };
        self.deliver(world, node, at, msg, payload);
    }

    /// The diff of a flush is empty: nothing is sent, and the copy's table hears of it.
    #[inline(never)]
    fn find_no_change<W>(&mut self, world: &mut W, node: NodeId)
    where
        W: World<Protocol = P, Payload = L>,
    {
        self.present(world, node, Event::NothingChanged);
    }
}

/// Only what is left to do.
impl<P: Protocol, L: Copy + Hash> Hash for Transaction<P, L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.handlers[..usize::from(self.depth)].hash(state);
        self.actions.as_slice().hash(state);
        self.later.hash(state);
    }
}
