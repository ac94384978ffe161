//! The synchronization objects of Finespun as state machines of their own: mutex, condition variable, barrier,
//! flag, lock for readers and writers, and the threads of a program. Event in, grants out; no operating system, clock, lock or allocation.
//!
//! An object is known by its *address* in the shared space, and a program may have millions. The state of an
//! object does not stand at its address (that memory is kept coherent by protocols that need locks themselves),
//! but in a [`Table`] at its *manager*, the node that [`place`] names:
//!
//! ```text
//!   requester                     manager of the object                  waiter
//!      | release, if it releases      |                                    |
//!      | --- Event ---------------->  | Table::on                          |
//!      |                              | --- Grant --------------------->   | acquire, go on
//!      | <-- Grant, if it is due ---  |                                    |
//!      | acquire, go on               |                                    |
//! ```
//!
//! Where a node's segment is mapped, the requester runs [`Table::on`] itself, under the table's lock; over a network
//! the manager's engine runs it for the message. The tables cannot tell.
//!
//! Beside a table stand words, one for each place that objects' addresses are hashed to: as long as nobody waits, most events of
//! mutexes and flags are one atomic instruction on a word ([`Word`]), and the table is not asked. Mutexes that migrate have words of
//! their own.
//!
//! What the runtime does around an event is what release consistency asks [Cashmere05 §2.1]:
//!
//! | event | before it | after its grant |
//! |---|---|---|
//! | `Lock`, `TryLock` (if it succeeds), `ReadLock`, `WriteLock` and kin, `WaitFlag`, `ReadFlag` | | acquire |
//! | `Unlock`, `RwUnlock`, `SetFlag` | release | |
//! | `Arrive` | release | acquire |
//! | `Enqueue`, then `Unlock`; on the grant `Lock` | release | acquire, at the grant of `Lock` |
//! | `Signal`, `Broadcast`, `Leave`, `ResetFlag` | | |
//!
//! Channels: an event need not be answered, except that a processor must know its `Enqueue` to be *done* before it
//! sends the `Unlock` (condition.rs says why), and that a processor which waits sends nothing else. Messages of one
//! processor to one manager must arrive in the order sent: an `Unlock` may not be overtaken by the next `Lock`.
//!
//! Cashmere builds its locks, barriers and flags from words that the Memory Channel broadcasts in order
//! [Cashmere05 §2.3.1.1], which costs no remote processor but leaves the order of lock holders to chance and spins.
//! Ours are queues at a manager, as in its variant without such a network, and as in FLASH's first design
//! [Heinlein98 §6.1.5], whose drawback stands there too: a hand-off passes by the manager. In the other kind of mutex,
//! [`migratory`], it does not; that one is served by the table of the node that asks, and its manager knows only where it went.

#![no_std]
#![forbid(unsafe_code)]

mod awaited;
mod barrier;
mod condition;
mod error;
mod event;
mod flag;
mod hash;
pub mod migratory;
mod mutex;
mod object;
mod queue;
mod resting;
mod rwlock;
pub mod stuck;
mod table;
mod thin;
pub mod threads;

pub use awaited::{Awaited, Need};
pub use error::{Error, Impossible, Misuse, Wrong};
pub use event::{Event, Grant, Kind};
pub use hash::{Place, place};
pub use queue::Waiter;
pub use table::{Entry, Header, Table};
pub use thin::{Quick, Thin, Word};
