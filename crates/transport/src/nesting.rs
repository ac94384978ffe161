//! A handler that polls would skip the peer whose message it handles, and could wait for it for ever.

use std::cell::Cell;

thread_local! {
    static POLLING: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread polls.
pub(crate) struct Here;

pub(crate) fn enter() -> Here {
    let was = POLLING.replace(true);
    debug_assert!(!was, "a handler must not poll");
    Here
}

impl Drop for Here {
    fn drop(&mut self) {
        POLLING.set(false);
    }
}
