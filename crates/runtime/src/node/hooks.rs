//! What a crate above is told: a diagnosis that the job asks for. Set once, at the start; one branch where there is none.

use std::ops::Range;
use std::sync::OnceLock;

use finespun_types::UnitId;

/// What is to be called.
#[derive(Default)]
pub struct Hooks {
    /// At the end of the runtime, and in a child made by fork, where only what is safe in a signal handler may be done.
    pub end: Option<fn()>,
    /// About stores to shared memory.
    pub stores: Option<&'static dyn Stores>,
}

/// Is told about this process's stores to shared memory.
pub trait Stores: Sync {
    /// The process may store to the unit from now on. In the fault handler.
    fn opens(&self, unit: UnitId);
    /// What the process has stored is about to be released.
    fn releases(&self);
    /// A thread of the program has its stack at these addresses.
    fn is_stack(&self, addresses: &Range<usize>);
}

static RELEASE: OnceLock<extern "C" fn()> = OnceLock::new();

/// From now on this is called before each call of the program that may release.
pub fn set_release(function: extern "C" fn()) {
    // A second call is a second start, which is refused.
    let _ = RELEASE.set(function);
}

/// A call of the program may release. On the program's own stack, with nothing of the engine in hand.
#[inline]
pub fn before_release() {
    if let Some(function) = RELEASE.get() {
        call(*function);
    }
}

/// Apart, so that the branch to it is all that a lock or an unlock has of it.
#[cold]
fn call(function: extern "C" fn()) {
    function();
}

static END: OnceLock<fn()> = OnceLock::new();
static STORES: OnceLock<&'static dyn Stores> = OnceLock::new();

/// Calls these from now on.
pub fn set(hooks: Hooks) {
    hooks.end.into_iter().for_each(|end| {
        END.get_or_init(|| end);
    });
    hooks.stores.into_iter().for_each(|stores| {
        STORES.get_or_init(|| stores);
    });
}

/// Who is told about stores, if the job asks for that.
#[inline]
pub fn stores() -> Option<&'static dyn Stores> {
    STORES.get().copied()
}

/// The runtime ends, or this is a child made by fork.
pub fn end() {
    if let Some(end) = END.get() {
        end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static ENDS: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn what_the_start_has_set_is_called() {
        end();
        set(Hooks::default());
        assert!(stores().is_none() && ENDS.load(Ordering::Relaxed) == 0);
        set(Hooks { end: Some(|| _ = ENDS.fetch_add(1, Ordering::Relaxed)), stores: None });
        end();
        assert_eq!(ENDS.load(Ordering::Relaxed), 1);
    }
}
