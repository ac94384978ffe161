//! What goes between nodes: how a message looks, who receives it, who waits for it.

pub mod closing;
pub mod heap_call;
pub mod poll;
pub mod wait;
pub mod wire;
