//! Cashmere's family in the checker: its invariants, its times, its seeded bugs.

pub mod broadcast;
pub mod bugs;
pub mod migration;
mod times;

use finespun_protocol::cashmere::invariants::{self, Whole};
use finespun_protocol::cashmere::{Cashmere, Directory, Msg, Unit};
use finespun_types::{NodeId, ViewId};

use crate::model::{Copy, Processor};
use crate::subject::{Model, Subject};

impl Subject for Cashmere {
    type Bug = bugs::Bug;

    const MODEL: Model = Model::Release;
    const KIND: &'static str = "lazy";

    fn message(other: NodeId, msg: Msg) -> String {
        message(other, msg)
    }

    fn state(unit: &Unit) -> String {
        format!("{:?}", unit.mode)
    }

    fn entry(directory: &Directory) -> String {
        format!("{:?} {:?}", directory.phase, directory.sharers)
    }

    fn check(units: &[Unit], directory: &Directory, in_flight: bool) -> Result<(), &'static str> {
        invariants::check(&Whole { units, directory, in_flight })
    }

    fn make_canonical(copies: &mut [Copy<Unit>], processors: &mut [Processor]) {
        times::make_canonical(copies, |unit| unit, processors);
    }

    fn is_dirty(unit: &Unit, view: ViewId) -> bool {
        unit.dirty.contains(view)
    }

    fn is_noticed(unit: &Unit, view: ViewId) -> bool {
        unit.noticed.contains(view)
    }

    fn has_twin(unit: &Unit) -> bool {
        unit.has_twin
    }

    fn master(copies: &[Unit], directory: &Directory) -> Option<NodeId> {
        directory.owner().or_else(|| copies.iter().find_map(Unit::home))
    }
}

/// A message, with the node at its other end.
fn message(other: NodeId, msg: Msg) -> String {
    match msg {
        Msg::Fetch { write: true } => format!("Fetch({other:?} write)"),
        Msg::Grant { exclusive: true, .. } => format!("Grant({other:?} exclusive)"),
        Msg::UpgradeReply { granted } => {
            format!("UpgradeReply({other:?} {})", if granted { "granted" } else { "refused" })
        }
        Msg::HomeIs(home) => format!("HomeIs({other:?} {home:?})"),
        Msg::FlushAck(sharers) => format!("FlushAck({other:?} {sharers:?})"),
        Msg::Fetch { write: false } => format!("Fetch({other:?})"),
        Msg::Grant { exclusive: false, .. } => format!("Grant({other:?})"),
        Msg::AskHome
        | Msg::Upgrade
        | Msg::Break
        | Msg::BreakReply
        | Msg::Flush
        | Msg::Leave
        | Msg::LeftAlone
        | Msg::Notice
        | Msg::NoticeAck => format!("{msg:?}({other:?})"),
    }
}
