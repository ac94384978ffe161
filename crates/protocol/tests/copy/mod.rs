//! One node's copy under Cashmere's tables, with a clock: who tests presents events and reads the actions.
#![allow(dead_code)] // each test program uses a part

use finespun_protocol::cashmere::sync::release_began;
use finespun_protocol::cashmere::{Event, Msg, Outcome, Place, Step, Unit};
use finespun_types::{NodeId, ViewId};

pub const HOME: NodeId = NodeId(0);
pub const ME: NodeId = NodeId(1);
pub const OTHER: NodeId = NodeId(2);
pub const A: ViewId = ViewId(0);
pub const B: ViewId = ViewId(1);
pub const GRANT: Msg = Msg::Grant { exclusive: false, alone: false };

/// One node's copy, with its clock.
pub struct Copy {
    pub unit: Unit,
    pub place: Place,
    pub now: u64,
}

impl Copy {
    pub fn at(me: NodeId) -> Self {
        let place = Place { me, manager: HOME, fixed_home: Some(HOME) };
        Self { unit: Unit::default(), place, now: 0 }
    }

    pub fn on(&mut self, event: Event) -> Step {
        self.now += 1;
        Step::of(|out| self.unit.on(self.place, self.now, event, out)).expect("the table has a row")
    }

    pub fn recv(&mut self, from: NodeId, msg: Msg) -> Step {
        self.on(Event::Recv { from, msg })
    }

    pub fn read(&mut self, view: ViewId) -> Step {
        let since = self.now + 1;
        self.on(Event::ReadFault { view, since })
    }

    pub fn write(&mut self, view: ViewId) -> Step {
        let since = self.now + 1;
        self.on(Event::WriteFault { view, since })
    }

    /// A release of one view, which flushes the unit.
    pub fn flush(&mut self, view: ViewId) -> Step {
        self.now += 1;
        let since = release_began(self.now, false);
        self.on(Event::Flush { view, since, keep: false })
    }

    pub fn acquire(&mut self, view: ViewId) -> Step {
        self.on(Event::Invalidate { view })
    }

    /// A shared copy that view A reads.
    pub fn shared(me: NodeId) -> Self {
        let mut copy = Self::at(me);
        copy.read(A);
        copy.recv(HOME, GRANT);
        copy.read(A);
        copy
    }

    /// A shared copy that view A writes.
    pub fn written(me: NodeId) -> Self {
        let mut copy = Self::shared(me);
        assert_eq!(copy.write(A).outcome, Outcome::Done);
        copy
    }

    /// An exclusive copy that view A writes.
    pub fn exclusive(me: NodeId) -> Self {
        let mut copy = Self::at(me);
        copy.write(A);
        copy.recv(HOME, Msg::Grant { exclusive: true, alone: true });
        copy.write(A);
        copy
    }
}
