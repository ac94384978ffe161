//! The protocols by name: what each is, and over which transports it runs.

use finespun_protocol::Family;
use finespun_protocol::cashmere::variants::Variant;

use crate::means::Transport;

/// A protocol that a job can run.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What a user calls it.
    pub name: &'static str,
    /// What it is, in one line.
    pub line: &'static str,
    /// Whose tables it runs.
    pub family: Family,
    /// Over `shm`: what goes by direct access and what by messages; `None`: it does not run there.
    pub shm: Option<Variant>,
    /// The same over `tcp`.
    pub tcp: Option<Variant>,
    /// Every process is a node of its own: `-n N -p P` runs as N x P nodes.
    pub one_level: bool,
}

/// Cashmere's two-level protocol, in the best variant for the transport.
pub const DEFAULT: &str = "csm-2l";

/// The name that stands for the protocol that measured best over the transport.
pub const AUTO: &str = "auto";

/// What [`AUTO`] stands for: the first of each transport's part of the last table in docs/protocols/comparison.md, which
/// `make protocols-table` makes anew.
#[must_use]
pub const fn best(transport: Transport) -> &'static str {
    match transport {
        Transport::Shm => "csm-dms",
        Transport::Tcp => "strings-rc",
    }
}

/// All of them.
pub const PROTOCOLS: &[Named] = &[
    Named {
        line: "Cashmere-2L: home-based, moderately lazy release consistency, two levels; the best variant for the transport",
        tcp: Some(Variant::NONE),
        ..cashmere(DEFAULT, Variant::DMS)
    },
    Named {
        line: "its variant with data, metadata and synchronization by direct access (csm-2l over shm)",
        ..cashmere("csm-dms", Variant::DMS)
    },
    Named { line: "data by explicit messages, metadata and synchronization direct", ..cashmere("csm-ms", Variant::MS) },
    Named { line: "data and metadata by explicit messages, synchronization direct", ..cashmere("csm-s", Variant::S) },
    Named {
        line: "everything by explicit messages (csm-2l over tcp)",
        tcp: Some(Variant::NONE),
        ..cashmere("csm-none", Variant::NONE)
    },
    Named {
        line: "csm-ms, and a page's home moves to a node that writes it",
        family: Family::Migrating,
        ..cashmere("csm-ms-mg", Variant::MS)
    },
    Named {
        line: "csm-none, and a page's home moves to a node that writes it",
        family: Family::Migrating,
        tcp: Some(Variant::NONE),
        ..cashmere("csm-none-mg", Variant::NONE)
    },
    Named {
        line: "one level: every process is a node of its own; -n N -p P runs as N x P nodes",
        one_level: true,
        ..cashmere("csm-1l-dms", Variant::DMS)
    },
    Named {
        line: "csm-ms with adaptive broadcast: widely read pages go once into a buffer that all nodes read",
        family: Family::Broadcasting,
        ..cashmere("csm-adb", Variant::MS)
    },
    Named {
        line: "csm-adb at one level: every process is a node of its own; -n N -p P runs as N x P nodes",
        family: Family::Broadcasting,
        one_level: true,
        ..cashmere("csm-1l-adb", Variant::MS)
    },
    Named {
        name: "strings-rc",
        line: "Strings: release consistency by update, many writers; a release sends its diffs to every sharer",
        family: Family::StringsRc,
        shm: Some(Variant::DMS),
        tcp: Some(Variant::NONE),
        one_level: false,
    },
    Named {
        name: "strings-sc",
        line: "Strings: sequential consistency by invalidation, one writer: a load returns the last store, races or not",
        family: Family::StringsSc,
        shm: Some(Variant::DMS),
        tcp: Some(Variant::NONE),
        one_level: false,
    },
    Named {
        line: "TreadMarks' lazy release consistency: diffs come from their writers; one level: every process is a node",
        family: Family::Tmk,
        tcp: Some(Variant::NONE),
        one_level: true,
        ..cashmere("tmk", Variant::DMS)
    },
];

/// A protocol of Cashmere's family over `shm`.
const fn cashmere(name: &'static str, variant: Variant) -> Named {
    Named { name, line: "", family: Family::Cashmere, shm: Some(variant), tcp: None, one_level: false }
}

impl Named {
    /// What goes by direct access and what by messages, over a transport.
    #[must_use]
    pub const fn over(&self, transport: Transport) -> Option<Variant> {
        match transport {
            Transport::Shm => self.shm,
            Transport::Tcp => self.tcp,
        }
    }

    /// The transports it runs over, for people.
    #[must_use]
    pub const fn transports(&self) -> &'static str {
        match (self.shm, self.tcp) {
            (Some(_), Some(_)) => "shm, tcp",
            (Some(_), None) => "shm",
            (None, Some(_)) => "tcp",
            (None, None) => "none",
        }
    }
}

/// The protocol of this name, if it runs over the transport.
///
/// # Errors
/// Why there is no such protocol there, as a sentence for the user.
pub fn named(name: &str, transport: Transport) -> Result<&'static Named, String> {
    let names = |of: &dyn Fn(&Named) -> bool| {
        let those: Vec<_> = PROTOCOLS.iter().filter(|named| of(named)).map(|named| named.name).collect();
        those.join(", ")
    };
    let name = if name == AUTO { best(transport) } else { name };
    let Some(found) = PROTOCOLS.iter().find(|named| named.name == name) else {
        return Err(format!("no protocol \"{name}\"; there is: {AUTO}, {}", names(&|_| true)));
    };
    if found.over(transport).is_none() {
        let there = names(&|named| named.over(transport).is_some());
        return Err(format!(
            "{name} works on other nodes' memory, which the transport tcp does not reach; over tcp there is: {there}"
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use finespun_protocol::cashmere::variants::Variant;

    use super::{PROTOCOLS, Transport, named};

    #[test]
    fn every_protocol_runs_over_shared_memory_and_over_tcp_only_what_needs_no_memory() {
        for each in PROTOCOLS {
            assert!(named(each.name, Transport::Shm).is_ok(), "{}", each.name);
            assert!(each.tcp.is_none_or(|variant| !variant.needs_memory()), "{}", each.name);
        }
    }

    #[test]
    fn the_default_is_the_best_variant_for_the_transport() {
        let over = |transport| named(super::DEFAULT, transport).unwrap().over(transport);
        assert_eq!([over(Transport::Shm), over(Transport::Tcp)], [Some(Variant::DMS), Some(Variant::NONE)]);
    }

    #[test]
    fn auto_is_what_the_table_in_the_documents_has_first() {
        let table = include_str!("../../../docs/protocols/comparison.md");
        for (transport, name) in [(Transport::Shm, "shm"), (Transport::Tcp, "tcp")] {
            let row = format!("| {name} | {} | 1.00 |", super::best(transport));
            assert!(table.contains(&row), "docs/protocols/comparison.md has no row {row}");
            assert_eq!(named("auto", transport).unwrap().name, super::best(transport));
        }
    }

    #[test]
    fn a_name_that_does_not_run_there_is_told_what_does() {
        assert!(named("csm", Transport::Shm).is_err_and(|why| why.contains("csm-ms")));
        assert!(named("csm-dms", Transport::Tcp).is_err_and(|why| why.contains("csm-2l, csm-none")));
    }

    #[test]
    fn no_two_protocols_have_one_name_and_each_has_its_line() {
        for (number, each) in PROTOCOLS.iter().enumerate() {
            assert!(!each.line.is_empty(), "{}", each.name);
            assert!(PROTOCOLS[..number].iter().all(|other| other.name != each.name), "{}", each.name);
        }
    }
}
