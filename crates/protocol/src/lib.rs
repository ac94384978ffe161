//! The coherence protocols, as pure tables: `(state, event) -> (state, actions)`.
//!
//! Nothing here knows an operating system, a clock, a thread or a socket. The live runtime and the checker run these
//! very tables; they differ in how they perform an [`page::Action`]. A unit's state is plain data of fixed size,
//! whose all-zero form is a unit nobody has touched: it lives in memory that the processes of a node share.

#![no_std]
#![forbid(unsafe_code)]

pub mod cashmere;
mod catalogue;
pub mod page;
pub mod strings;
pub mod tmk;
pub mod whole;

/// Which tables a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// [`cashmere`].
    Cashmere,
    /// [`cashmere::broadcast`].
    Broadcasting,
    /// [`cashmere::migration`].
    Migrating,
    /// [`strings::update`].
    StringsRc,
    /// [`strings::invalidate`].
    StringsSc,
    /// [`tmk`].
    Tmk,
}
