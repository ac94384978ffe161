//! `tmk`: lazy release consistency in the manner of TreadMarks [Cashmere05 §4.1, Keleher92, Amza96], one level: each process
//! is a node. Homeless: nobody keeps a master copy, and nothing is sent at a release.
//!
//! A node's stores between two of its releases are an *interval*. What happens before what is told by *vector times*: for each
//! node, how many of its intervals are known ([`Knowledge`]). A lock's grant or a barrier's departure brings the intervals that
//! its receiver lacks, each with the units written in it, the *write notices*; the receiver drops its mappings of those. The
//! stores themselves stay where they were made until somebody faults and asks their writers for *diffs* ([`Unit`]).
//!
//! ```text
//!   releaser             manager of the lock         acquirer                            writers of the unit
//!      | -- Unlock: time, news --> |                     |                                    |
//!      |                           | <-- Lock: time ---- |                                    |
//!      |                           | -- Grant: time, --> | notices: mappings dropped          |
//!      |                           |    news             | fault                              |
//!      |                           |                     | -- AskDiffs(after, upto) --------> |  to each writer that has
//!      |                           |                     |                                    |  what the copy lacks
//!      |                           |                     | <-- Diffs ------------------------ |  made now, if not before
//!      |                           |                     | applied in the order of stamps     |
//!
//!   first touch of a unit that was written: -- AskBase --> last writer known;  <-- Base(page, applied) or NoBase(somebody later)
//! ```
//!
//! **Stamps.** An interval's stamp is one more than the highest its node knew of: a linear extension of happens-before. Diffs of
//! one unit are applied in the order (stamp, node). Diffs that are concurrent touch different bytes, or the program has a race.
//!
//! **Lazy diffs.** The end of an interval write-protects what was written and keeps the twin; the interval is *owed*. The diff is made
//! when somebody asks. If the node writes the unit again first, the same twin serves on, and one diff covers all those
//! intervals: it carries the index of the last and the stamp of the first. This is safe because whatever could tell the
//! intervals apart settles the debt before: a diff or page that leaves the node, a diff of another node applied at it, and another
//! node's write notice. So nobody has an earlier part of such a diff; and whatever happened before any store in it, happened
//! before all of it, and has a lower stamp. If stores of the open interval are in the frame by then,
//! they go along, and the twin becomes what was sent, so that the next diff is against that.
//!
//! **Channel assumption**: messages from one node to another arrive in the order sent, none is lost ([`Knowledge::news`] counts
//! on it: what was told once is not told again).
//!
//! **Collection.** Diffs, twins of what is owed and intervals are kept until all processors are at a barrier and some node asks for
//! room. Then each unit's last writer fetches what its copy lacks, and so does a node that has written the unit later than the barrier
//! ([`Event::Keep`]); all meet. Every node drops what lacks something and forgets the collected ([`Event::Collect`]); all meet again. What
//! is owed by a copy that the open interval writes stays owed: its twin is older. From then on the last writer's copy is the base. A node's faults wait meanwhile, for they could ask for what is being forgotten.

pub mod invariants;
mod knowledge;
mod unit;

pub use knowledge::{Knowledge, covers, raise};
pub use unit::{Action, Actions, Event, Impossible, Mode, Outcome, Seen, Step, Unit};
