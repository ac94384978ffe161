//! What must hold of one unit whose home may move, beside the sentences of the other variants.

use finespun_types::NodeId;

use super::super::invariants::{self, Whole};
use super::super::{Directory, Mode, Unit};
use super::{Copied, Entry};

/// The most nodes of a world.
const NODES_MAX: usize = 16;

/// The home moved twice at once.
pub const ONE_HOME: &str = "no two nodes are home";
/// A hint or a pointer leads astray.
pub const LEADS_HOME: &str =
    "from every node that has asked, hint and pointers lead to the home, no longer than there are nodes";

/// Checks every sentence that must hold now: `copies` and `entries` by node.
///
/// # Errors
/// The first sentence that does not hold.
pub fn check(copies: &[Copied], entries: &[Entry], in_flight: bool) -> Result<(), &'static str> {
    let mut units = [Unit::default(); NODES_MAX];
    units.iter_mut().zip(copies).for_each(|(unit, copied)| *unit = copied.unit);
    let homes = (0..copies.len()).filter(|&node| copies[node].unit.is_home(NodeId::of(node)));
    if homes.count() > 1 {
        return Err(ONE_HOME);
    }
    if !in_flight && !hints_lead_home(copies, entries) {
        return Err(LEADS_HOME);
    }
    let directory =
        home(copies, entries).map_or_else(Directory::default, |home| entries[usize::from(home.0)].directory);
    invariants::check_moving(&Whole { units: &units[..copies.len()], directory: &directory, in_flight })
}

/// The home, as the pointers tell it; `None` before anybody knows one, and while it is moving.
#[must_use]
pub fn home(copies: &[Copied], entries: &[Entry]) -> Option<NodeId> {
    copies.iter().find_map(|copied| led_to(copied.unit.home()?, entries))
}

fn hints_lead_home(copies: &[Copied], entries: &[Entry]) -> bool {
    let home = home(copies, entries);
    let known = copies.iter().filter(|copied| !matches!(copied.unit.mode, Mode::Untouched | Mode::AskingHome));
    home.is_none_or(|home| entries[usize::from(home.0)].moved_to().is_none())
        && known.filter_map(|copied| copied.unit.home()).all(|hint| led_to(hint, entries) == home)
}

/// Where the pointers lead from a node; `None` if in a circle.
fn led_to(mut node: NodeId, entries: &[Entry]) -> Option<NodeId> {
    for _ in 0..entries.len() {
        match entries[usize::from(node.0)].moved_to() {
            Some(next) => node = next,
            None => return Some(node),
        }
    }
    None
}
