//! The protocols, in each of their variants: what the simulator must know of them beside their tables.

use std::fmt::Debug;

use finespun_protocol::cashmere::broadcast::{self, Broadcasting};
use finespun_protocol::cashmere::migration::{self, Migrating};
use finespun_protocol::cashmere::{self, Cashmere};
use finespun_protocol::page::Protocol;
use finespun_protocol::strings::invalidate::{self, StringsSc};
use finespun_protocol::strings::update::{self, StringsRc};
use finespun_protocol::whole::Whole;

/// A protocol that can be simulated.
pub trait Subject: Protocol {
    /// Loads return the last store, races or not.
    const SEQUENTIAL: bool = false;

    /// Of two racing stores that meet in one word, each copy ends with the same. Not under updates, which reach copies in any order.
    const ORDERS_RACES: bool = true;

    /// A copy's state as it stands in a trace line.
    fn state(copy: &Self::Unit) -> String;

    /// Does the message ask for a page?
    fn is_fetch(msg: Self::Msg) -> bool;

    /// The protocol's named sentences about a unit: its copies and directory entries, by node.
    fn check(copies: &[Self::Unit], entries: &[Self::Directory], in_flight: bool) -> Result<(), &'static str>;
}

/// The entry that is not empty, if one is.
fn only_one<D: Copy + Default + Eq>(directories: &[D]) -> D {
    directories.iter().copied().find(|entry| *entry != D::default()).unwrap_or_default()
}

impl Subject for Cashmere {
    fn is_fetch(msg: Self::Msg) -> bool {
        matches!(msg, cashmere::Msg::Fetch { .. })
    }

    fn state(copy: &cashmere::Unit) -> String {
        state(&copy.mode)
    }

    fn check(
        units: &[cashmere::Unit],
        directories: &[cashmere::Directory],
        in_flight: bool,
    ) -> Result<(), &'static str> {
        let directory = &only_one(directories);
        cashmere::invariants::check(&Whole { units, directory, in_flight })
    }
}

impl Subject for Broadcasting {
    fn is_fetch(msg: Self::Msg) -> bool {
        matches!(msg, broadcast::Msg::Plain(cashmere::Msg::Fetch { .. }))
    }

    fn state(copy: &cashmere::Unit) -> String {
        state(&copy.mode)
    }

    fn check(units: &[cashmere::Unit], directories: &[Self::Directory], in_flight: bool) -> Result<(), &'static str> {
        let directory = &only_one(directories).directory;
        cashmere::invariants::check(&Whole { units, directory, in_flight })
    }
}

impl Subject for Migrating {
    fn is_fetch(msg: Self::Msg) -> bool {
        matches!(msg, migration::Msg::Plain(cashmere::Msg::Fetch { .. }))
    }

    fn state(copied: &migration::Copied) -> String {
        let home = copied.unit.home().map_or(String::new(), |home| format!(" home {home:?}"));
        state(&copied.unit.mode) + &home
    }

    fn check(copies: &[migration::Copied], entries: &[migration::Entry], in_flight: bool) -> Result<(), &'static str> {
        migration::invariants::check(copies, entries, in_flight)
    }
}

impl Subject for StringsRc {
    const ORDERS_RACES: bool = false;

    fn is_fetch(msg: Self::Msg) -> bool {
        matches!(msg, update::Msg::Fetch)
    }

    fn state(copy: &update::Unit) -> String {
        state(&copy.mode)
    }

    fn check(units: &[update::Unit], directories: &[update::Directory], in_flight: bool) -> Result<(), &'static str> {
        let directory = &only_one(directories);
        update::invariants::check(&Whole { units, directory, in_flight })
    }
}

impl Subject for StringsSc {
    const SEQUENTIAL: bool = true;

    fn is_fetch(msg: Self::Msg) -> bool {
        matches!(msg, invalidate::Msg::Fetch { .. })
    }

    fn state(copy: &invalidate::Unit) -> String {
        format!("{:?} leaving {:?}", copy.mode, copy.leaving)
    }

    fn check(
        units: &[invalidate::Unit],
        directories: &[invalidate::Directory],
        in_flight: bool,
    ) -> Result<(), &'static str> {
        let directory = &only_one(directories);
        invalidate::invariants::check(&Whole { units, directory, in_flight })
    }
}

fn state(mode: &impl Debug) -> String {
    format!("{mode:?}")
}
