//! What the runtime guesses about a program: it decides when an event happens, never what comes of it.

pub mod rewrites;
