//! Direct or by message? What a process of a node does by itself on other nodes' memory, and what it asks their engines for.
//!
//! Two things decide it: the transport, which says whose memory is mapped, and the protocol's [`Variant`], which says what of it is used.
//! [`Reach`] is computed from both once, and answers every such question.
//!
//! ```text
//!                      shm                                  tcp
//!   variant            dms      ms       s        none      none
//!   maps others        yes      yes      yes      yes       no
//!   data               direct   message  message  message   message
//!   metadata           direct   direct   message  message   message
//!   synchronization    direct   direct   direct   message   message
//! ```

use finespun_protocol::cashmere::variants::{Variant, Way};
use finespun_protocol::page::Message;
use finespun_types::NodeId;

use crate::Transport;

/// What a process of a node reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    me: NodeId,
    /// The memory of all nodes is mapped.
    maps_all: bool,
    /// Something goes by messages.
    sends: bool,
    variant: Variant,
}

impl Reach {
    /// The reach of node `me`.
    #[must_use]
    pub const fn of(variant: Variant, transport: Transport, me: NodeId) -> Self {
        let maps_all = match transport {
            Transport::Shm => true,
            Transport::Tcp => false,
        };
        Self { me, maps_all, sends: variant.sends_messages(), variant }
    }

    /// Is the node's memory mapped here?
    #[inline]
    #[must_use]
    pub const fn maps(self, node: NodeId) -> bool {
        self.maps_all || node.0 == self.me.0
    }

    /// The memories of how many nodes are mapped here, of so many?
    #[must_use]
    pub const fn mapped_of(self, nodes: u32) -> u32 {
        if self.maps_all { nodes } else { 1 }
    }

    /// Does everything go by direct access? Then an answer is there when a call returns.
    #[inline]
    #[must_use]
    pub const fn is_direct(self) -> bool {
        !self.sends
    }

    /// Does anything go by messages? Then there are connections, and an answer may have to be waited for.
    #[inline]
    #[must_use]
    pub const fn sends_messages(self) -> bool {
        self.sends
    }

    /// Has everything that a transaction asks other nodes been answered when it is over? `revokes`: the tables answer only when a program's
    /// mapping has been taken away.
    #[inline]
    #[must_use]
    pub const fn answers_inside(self, revokes: bool) -> bool {
        self.is_direct() && !revokes
    }

    /// Does this process run the node's tables of synchronization, threads and heap itself? Else it asks.
    #[inline]
    #[must_use]
    pub const fn runs_tables_of(self, node: NodeId) -> bool {
        node.0 == self.me.0 || self.runs_tables_of_all()
    }

    /// Does it for every node? Then every process of the job does.
    #[inline]
    #[must_use]
    pub const fn runs_tables_of_all(self) -> bool {
        matches!(self.variant.synchronization, Way::Direct)
    }

    /// May this process look at what the node knows of a unit, without a message?
    #[inline]
    #[must_use]
    pub const fn looks_at(self, node: NodeId) -> bool {
        node.0 == self.me.0 || self.looks_at_all()
    }

    /// May it at every node?
    #[inline]
    #[must_use]
    pub const fn looks_at_all(self) -> bool {
        self.maps_all && matches!(self.variant.metadata, Way::Direct)
    }

    /// The way of a message about a unit to another node.
    #[inline]
    #[must_use]
    pub fn way(self, msg: impl Message) -> Way {
        self.variant.way(msg)
    }
}

#[cfg(test)]
mod tests {
    use finespun_protocol::cashmere::Msg;
    use finespun_protocol::cashmere::variants::{Variant, Way};
    use finespun_protocol::page::{Class, Message};
    use finespun_types::NodeId;

    use super::Reach;
    use crate::Transport::{self, Shm, Tcp};
    use crate::protocols::PROTOCOLS;

    /// What is asked about another node: maps, data direct, looks, runs tables, sends messages.
    type Row = (Variant, Transport, [bool; 5]);

    #[rustfmt::skip]
    const TABLE: [Row; 5] = [
        (Variant::DMS,  Shm, [true,  true,  true,  true,  false]),
        (Variant::MS,   Shm, [true,  false, true,  true,  true]),
        (Variant::S,    Shm, [true,  false, false, true,  true]),
        (Variant::NONE, Shm, [true,  false, false, false, true]),
        (Variant::NONE, Tcp, [false, false, false, false, true]),
    ];

    const ME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(0);
    const DATA: Msg = Msg::Flush;
    const METADATA: Msg = Msg::AskHome;

    #[test]
    fn another_node_is_reached_as_the_table_says() {
        assert_eq!([DATA.class(), METADATA.class()], [Class::Data, Class::Metadata]);
        for (variant, transport, expected) in TABLE {
            let reach = Reach::of(variant, transport, ME);
            let data = reach.way(DATA) == Way::Direct;
            let [maps, looks] = [reach.maps(OTHER), reach.looks_at(OTHER)];
            let found = [maps, data, looks, reach.runs_tables_of(OTHER), reach.sends_messages()];
            assert_eq!(found, expected, "{variant:?} over {transport:?}");
            assert_eq!(reach.mapped_of(3), if maps { 3 } else { 1 });
            assert_eq!([reach.looks_at_all(), reach.runs_tables_of_all()], [expected[2], expected[3]]);
            assert_eq!(reach.way(METADATA) == Way::Direct, expected[2], "{variant:?} over {transport:?}");
        }
    }

    #[test]
    fn a_node_reaches_itself_whatever_the_variant() {
        for (variant, transport, _) in TABLE {
            let reach = Reach::of(variant, transport, ME);
            assert!(reach.maps(ME) && reach.looks_at(ME) && reach.runs_tables_of(ME), "{variant:?} over {transport:?}");
        }
    }

    #[test]
    fn answers_come_inside_where_nothing_is_sent_and_no_mapping_must_go_first() {
        for (variant, transport, [.., sends]) in TABLE {
            let reach = Reach::of(variant, transport, ME);
            assert_eq!([reach.answers_inside(false), reach.answers_inside(true)], [!sends, false]);
        }
    }

    /// What is direct needs the other node's memory: no protocol says otherwise, and the table has all that they say.
    #[test]
    fn every_protocol_over_each_of_its_transports_stands_in_the_table() {
        for protocol in PROTOCOLS {
            for transport in [Shm, Tcp] {
                let Some(variant) = protocol.over(transport) else { continue };
                let stands = TABLE.iter().any(|row| (row.0, row.1) == (variant, transport));
                assert!(stands, "{} over {transport:?}", protocol.name);
                assert!(!variant.needs_memory() || Reach::of(variant, transport, ME).maps(OTHER), "{}", protocol.name);
            }
        }
    }
}
