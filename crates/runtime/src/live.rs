//! What the runtime needs of a protocol beside its tables: the words of its messages on the wire, and what it counts.

mod strings;

use finespun_protocol::Family;
use finespun_protocol::cashmere::broadcast::{self, Broadcasting};
use finespun_protocol::cashmere::migration::{self, Migrating};
use finespun_protocol::cashmere::{Cashmere, Msg};
use finespun_protocol::page::Protocol;
use finespun_types::{Counter, NodeId, NodeSet};

use crate::sys::state::Plain;

/// A protocol that jobs can run.
pub trait Live: Protocol<Unit: Plain, Directory: Plain, Manager: Plain> {
    /// Its name among the families.
    const FAMILY: Family;

    /// A message as a number and a word.
    fn words(msg: Self::Msg) -> (u8, u64);
    /// The message of such words; `None` if it is none of this protocol's.
    fn msg(number: u8, word: u64) -> Option<Self::Msg>;
    /// What to count when the message crosses between nodes, beside messages and bytes.
    fn counter(msg: Self::Msg) -> Option<Counter>;
}

impl Live for Cashmere {
    const FAMILY: Family = Family::Cashmere;

    fn words(msg: Msg) -> (u8, u64) {
        match msg {
            Msg::AskHome => (1, 0),
            Msg::HomeIs(home) => (2, u64::from(home.0)),
            Msg::Fetch { write } => (3, u64::from(write)),
            Msg::Grant { exclusive, alone } => (4, u64::from(exclusive) | u64::from(alone) << 1),
            Msg::Upgrade => (5, 0),
            Msg::UpgradeReply { granted } => (6, u64::from(granted)),
            Msg::Break => (7, 0),
            Msg::BreakReply => (8, 0),
            Msg::Flush => (9, 0),
            Msg::FlushAck(sharers) => (10, sharers.0),
            Msg::Leave => (11, 0),
            Msg::Notice => (12, 0),
            Msg::NoticeAck => (13, 0),
            Msg::LeftAlone => (14, 0),
        }
    }

    fn msg(number: u8, word: u64) -> Option<Msg> {
        Some(match number {
            1 => Msg::AskHome,
            2 => Msg::HomeIs(NodeId(u8::try_from(word).ok()?)),
            3 => Msg::Fetch { write: word != 0 },
            4 => Msg::Grant { exclusive: word & 1 != 0, alone: word & 2 != 0 },
            5 => Msg::Upgrade,
            6 => Msg::UpgradeReply { granted: word != 0 },
            7 => Msg::Break,
            8 => Msg::BreakReply,
            9 => Msg::Flush,
            10 => Msg::FlushAck(NodeSet { 0: word }),
            11 => Msg::Leave,
            12 => Msg::Notice,
            13 => Msg::NoticeAck,
            14 => Msg::LeftAlone,
            _ => return None,
        })
    }

    fn counter(msg: Msg) -> Option<Counter> {
        match msg {
            Msg::Notice => Some(Counter::WriteNotices),
            Msg::Break => Some(Counter::ExclusiveBreaks),
            Msg::AskHome | Msg::HomeIs(_) | Msg::Fetch { .. } | Msg::Grant { .. } | Msg::Upgrade => None,
            Msg::UpgradeReply { .. } | Msg::BreakReply | Msg::Flush | Msg::FlushAck(_) | Msg::Leave => None,
            Msg::LeftAlone | Msg::NoticeAck => None,
        }
    }
}

impl Live for Broadcasting {
    const FAMILY: Family = Family::Broadcasting;

    fn words(msg: broadcast::Msg) -> (u8, u64) {
        match msg {
            broadcast::Msg::Plain(msg) => Cashmere::words(msg),
            broadcast::Msg::Look => (32, 0),
            broadcast::Msg::Buffered { alone } => (33, u64::from(alone)),
            broadcast::Msg::NoBuffer => (34, 0),
            broadcast::Msg::Announced => (35, 0),
        }
    }

    fn msg(number: u8, word: u64) -> Option<broadcast::Msg> {
        match number {
            32 => Some(broadcast::Msg::Look),
            33 => Some(broadcast::Msg::Buffered { alone: word != 0 }),
            34 => Some(broadcast::Msg::NoBuffer),
            35 => Some(broadcast::Msg::Announced),
            plain => Cashmere::msg(plain, word).map(broadcast::Msg::Plain),
        }
    }

    fn counter(msg: broadcast::Msg) -> Option<Counter> {
        match msg {
            broadcast::Msg::Plain(msg) => Cashmere::counter(msg),
            broadcast::Msg::Buffered { .. } => Some(Counter::BroadcastHits),
            broadcast::Msg::Look | broadcast::Msg::NoBuffer | broadcast::Msg::Announced => None,
        }
    }
}

// From 32 on: its own messages.
impl Live for Migrating {
    const FAMILY: Family = Family::Migrating;

    fn words(msg: migration::Msg) -> (u8, u64) {
        use migration::Msg::{Adopt, FetchFor, FlushFor, Migrate, Migrated, Plain, Stay, Yield, Yielded};
        match msg {
            Plain(msg) => Cashmere::words(msg),
            Migrate => (32, 0),
            Yield { to } => (33, u64::from(to.0)),
            Yielded { to, leaves } => (34, u64::from(to.0) | u64::from(leaves) << 8),
            Migrated { sharers } => (35, sharers.0),
            Adopt { sharers } => (36, sharers.0),
            Stay => (37, 0),
            FetchFor { of, write } => (38, u64::from(of.0) | u64::from(write) << 8),
            FlushFor { of } => (39, u64::from(of.0)),
        }
    }

    fn msg(number: u8, word: u64) -> Option<migration::Msg> {
        use migration::Msg::{Adopt, FetchFor, FlushFor, Migrate, Migrated, Plain, Stay, Yield, Yielded};
        let (node, flag) = (NodeId(word as u8), word & 1 << 8 != 0);
        Some(match number {
            32 => Migrate,
            33 => Yield { to: node },
            34 => Yielded { to: node, leaves: flag },
            35 => Migrated { sharers: NodeSet { 0: word } },
            36 => Adopt { sharers: NodeSet { 0: word } },
            37 => Stay,
            38 => FetchFor { of: node, write: flag },
            39 => FlushFor { of: node },
            _ => Plain(Cashmere::msg(number, word)?),
        })
    }

    fn counter(msg: migration::Msg) -> Option<Counter> {
        use migration::Msg::{Adopt, FetchFor, FlushFor, Migrate, Migrated, Plain, Stay, Yield, Yielded};
        match msg {
            Plain(msg) => Cashmere::counter(msg),
            Migrate | Yield { .. } | Yielded { .. } | Migrated { .. } | Adopt { .. } | Stay => None,
            FetchFor { .. } | FlushFor { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_cashmere_survives_the_wire() {
        for msg in [
            Msg::AskHome,
            Msg::HomeIs(NodeId(63)),
            Msg::Fetch { write: true },
            Msg::Fetch { write: false },
            Msg::Grant { exclusive: true, alone: true },
            Msg::Grant { exclusive: false, alone: true },
            Msg::Upgrade,
            Msg::UpgradeReply { granted: true },
            Msg::Break,
            Msg::BreakReply,
            Msg::Flush,
            Msg::FlushAck(NodeSet { 0: u64::MAX }),
            Msg::Leave,
            Msg::Notice,
            Msg::NoticeAck,
            Msg::LeftAlone,
        ] {
            let (number, word) = Cashmere::words(msg);
            assert_eq!(Cashmere::msg(number, word), Some(msg));
        }
        assert_eq!(Cashmere::msg(99, 0), None);
    }

    #[test]
    fn every_message_of_adaptive_broadcast_survives_the_wire() {
        use broadcast::Msg::{Announced, Buffered, Look, NoBuffer, Plain};
        for msg in [Plain(Msg::Break), Look, Buffered { alone: true }, Buffered { alone: false }, NoBuffer, Announced] {
            let (number, word) = Broadcasting::words(msg);
            assert_eq!(Broadcasting::msg(number, word), Some(msg));
        }
    }

    #[test]
    fn every_message_of_home_migration_survives_the_wire() {
        use migration::Msg::{Adopt, FetchFor, FlushFor, Migrate, Migrated, Plain, Stay, Yield, Yielded};
        let node = NodeId(63);
        for msg in [
            Plain(Msg::Fetch { write: true }),
            Plain(Msg::NoticeAck),
            Migrate,
            Yield { to: node },
            Yielded { to: node, leaves: true },
            Yielded { to: node, leaves: false },
            Migrated { sharers: NodeSet { 0: u64::MAX } },
            Adopt { sharers: NodeSet { 0: 5 } },
            Stay,
            FetchFor { of: node, write: true },
            FetchFor { of: node, write: false },
            FlushFor { of: node },
        ] {
            let (number, word) = Migrating::words(msg);
            assert_eq!(Migrating::msg(number, word), Some(msg));
        }
        assert_eq!(Migrating::msg(99, 0), None);
    }
}
