//! The C API over `finespun_runtime::program`: thin, one function each. What the functions promise stands in the headers
//! under `include/finespun`.
//!
//! The border between C and Rust is here: this crate is unsafe where it takes pointers from C.

mod base;
mod error;
mod hooks;
mod interpose;
mod memory;
mod program;
mod pthread;
mod sync;
mod thread;
