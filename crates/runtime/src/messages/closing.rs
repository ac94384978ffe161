//! The end of a process must not cut off what one of its threads does for others.
//!
//! A thread that waits handles messages, and so does the communication thread. What it handles may be the very message that lets
//! the process's main thread go on to its end: a barrier's last arrival, whose grants it is just sending. If the process ended
//! then, the grants not sent yet would be lost, and a lock that is held would never be given back. So whoever ends the process
//! closes it first: nobody begins anything for others any more, and what has begun ends.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Who may still do something for others in this process.
struct Gate {
    inside: AtomicU32,
    closed: AtomicBool,
}

static OF_PROCESS: Gate = Gate { inside: AtomicU32::new(0), closed: AtomicBool::new(false) };

/// While it lives, the process does not end.
pub struct Busy(&'static Gate);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    /// The order of the two steps, here and in `close`, is what matters: one of the two sees the other.
    fn enter(&'static self) -> Option<Busy> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let busy = Busy(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(busy)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.inside.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

/// The caller is about to do something for others; `None` if the process is about to end.
pub fn enter() -> Option<Busy> {
    OF_PROCESS.enter()
}

/// The process is about to end: returns when nobody is [`Busy`]. Handlers never wait, so that is soon. Not while the caller is one.
pub fn close() {
    OF_PROCESS.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_closes_waits_for_those_inside_and_lets_nobody_in_afterwards() {
        static GATE: Gate = Gate { inside: AtomicU32::new(0), closed: AtomicBool::new(false) };
        static DONE: AtomicBool = AtomicBool::new(false);
        let busy = GATE.enter().expect("open");
        std::thread::scope(|scope| {
            let closer = scope.spawn(|| {
                GATE.close();
                DONE.load(Ordering::SeqCst)
            });
            while GATE.enter().is_some() {
                std::thread::yield_now();
            }
            DONE.store(true, Ordering::SeqCst);
            drop(busy);
            assert!(closer.join().expect("no panic"), "it did not wait");
        });
        assert!(GATE.enter().is_none());
        assert_eq!(GATE.inside.load(Ordering::SeqCst), 0);
    }
}
