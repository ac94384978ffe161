//! The variants without home migration and broadcast: what a node does by direct access to another's memory, and what by explicit
//! messages [Cashmere05 table I, §2.3.1].
//!
//! ```text
//!   variant     data       metadata   synchronization
//!   csm-dms     direct     direct     direct
//!   csm-ms      messages   direct     direct
//!   csm-s       messages   messages   direct
//!   csm-none    messages   messages   messages
//! ```
//!
//! The tables are the same in all; only the way of a message differs. One difference from the paper: its `DMS` fetches pages
//! by messages, since the Memory Channel cannot read remotely; ours reads the home's frame.
//!
//! Where both ways are used, what is direct may overtake what is a message, so what must stay in order goes one way.
//! The checker shows three orders that must hold among data: a request to leave exclusive mode after the page that
//! granted it, a fetch after the node's own flush (else the page undoes the store), a flush after the answer to such a
//! request. A write notice may overtake a page: a copy is as new as its request.

use crate::page::{Class, Message};

/// How something reaches another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// The sender works on the receiver's memory.
    Direct,
    /// An explicit message, which the receiver's engine handles.
    Message,
}

/// A variant of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// Of [`Class::Data`].
    pub data: Way,
    /// Of [`Class::Metadata`].
    pub metadata: Way,
    /// Of mutexes, barriers, flags, threads and the heap.
    pub synchronization: Way,
}

impl Variant {
    /// Everything direct.
    pub const DMS: Self = Self { data: Way::Direct, metadata: Way::Direct, synchronization: Way::Direct };
    /// Metadata and synchronization direct.
    pub const MS: Self = Self { data: Way::Message, ..Self::DMS };
    /// Synchronization direct.
    pub const S: Self = Self { metadata: Way::Message, ..Self::MS };
    /// Nothing direct.
    pub const NONE: Self = Self { synchronization: Way::Message, ..Self::S };

    /// The variants by their names.
    pub const NAMED: [(&str, Self); 4] =
        [("csm-dms", Self::DMS), ("csm-ms", Self::MS), ("csm-s", Self::S), ("csm-none", Self::NONE)];

    /// The way of a message to another node.
    #[must_use]
    pub fn way(&self, msg: impl Message) -> Way {
        match msg.class() {
            Class::Data => self.data,
            Class::Metadata => self.metadata,
        }
    }

    /// Does anything go by messages?
    #[must_use]
    pub const fn sends_messages(&self) -> bool {
        matches!(self.data, Way::Message)
            || matches!(self.metadata, Way::Message)
            || matches!(self.synchronization, Way::Message)
    }

    /// Does anything need another node's memory?
    #[must_use]
    pub const fn needs_memory(&self) -> bool {
        matches!(self.data, Way::Direct)
            || matches!(self.metadata, Way::Direct)
            || matches!(self.synchronization, Way::Direct)
    }
}

#[cfg(test)]
mod tests {
    use super::{Variant, Way};

    #[test]
    fn each_variant_uses_less_of_the_network_than_the_one_before() {
        let direct = |variant: &Variant| {
            [variant.data, variant.metadata, variant.synchronization].iter().filter(|way| **way == Way::Direct).count()
        };
        assert!(Variant::NAMED.iter().map(|(_, variant)| direct(variant)).eq([3, 2, 1, 0]));
        assert!(!Variant::DMS.sends_messages() && !Variant::NONE.needs_memory());
    }
}
