//! The unsafe code of the runtime: the node's memory, inherited descriptors, the process.

#[cfg(test)]
pub mod access;
pub mod asleep;
pub mod buffers;
pub mod carrier;
pub mod descriptors;
pub mod frames;
pub mod lists;
pub mod live;
pub mod phase;
pub mod process;
pub mod records;
mod region;
pub mod segment;
pub mod shape;
pub mod siblings;
pub mod slot;
pub mod text;
pub mod tmk;
pub mod tmk_records;
pub mod window;
