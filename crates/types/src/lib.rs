//! The nouns that every part of Finespun shares. No dependencies, no operating system.
//!
//! `docs/glossary.md` says where each word comes from.

#![no_std]
#![forbid(unsafe_code)]

pub mod catalogue;
mod counters;
mod geometry;
mod nouns;
mod set;

pub use counters::{Bucket, Counter, Counters};
pub use geometry::{PAGE_BYTES, UnitSize};
pub use nouns::{Access, NODES_MAX, NodeId, NodeIndex, ProcessorId, SPACE_BASE, UnitId, VIEWS_MAX, ViewId};
pub use set::{NodeSet, Set, ViewSet};
