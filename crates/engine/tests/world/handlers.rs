//! Signal handlers of the program. One runs while its thread waits for an answer of another processor, and not while it waits in the middle
//! of a release, an acquire or a fault.

use crate::engine::Engine;
use crate::job::Job;
use crate::processor::{Doing, Interrupted};
use crate::program::Op;

/// One wait in so many is interrupted, where the processor has a handler.
const INTERRUPTED_IN: usize = 3;

impl<E: Engine> Job<'_, E> {
    /// The processor's next operation, of its script or of the handler that has interrupted it.
    pub fn op(&self, who: usize) -> Option<Op> {
        let processor = &self.processors[who];
        match (&processor.interrupted, self.program.handlers[who], processor.next) {
            (None, _, next) => self.program.scripts[who].get(next).copied(),
            (Some(_), Some(word), 0) => Some(Op::Load(word)),
            (Some(_), Some(word), 1) => Some(Op::Store(word)),
            (Some(_), _, _) => None,
        }
    }

    /// The operation of the processor's script, also where a handler has interrupted it.
    pub fn awaiting_op(&self, who: usize) -> Option<Op> {
        let processor = &self.processors[who];
        let next = processor.interrupted.as_ref().map_or(processor.next, |interrupted| interrupted.next);
        self.program.scripts[who].get(next).copied()
    }

    /// May a handler of the processor begin? Not before there is the memory that it uses.
    pub fn has_handler(&self, who: usize) -> bool {
        let word = self.program.handlers[who].filter(|_| self.processors[who].interrupted.is_none());
        word.is_some_and(|word| !self.objects[usize::from(word.object)].is_empty())
    }

    /// The processor is about to wait: a signal may come.
    pub fn take_signal(&mut self, who: usize) {
        if self.has_handler(who) && self.random.once_in(INTERRUPTED_IN) {
            self.processors[who].signal_due = true;
            self.put(who);
        }
    }

    pub fn begin_handler(&mut self, who: usize) {
        self.note(|| format!("p{who} begins its handler"));
        let processor = &mut self.processors[who];
        let (next, phase, doing) =
            (processor.next, processor.phase, std::mem::replace(&mut processor.doing, Doing::Nothing));
        processor.interrupted = Some(Interrupted { next, phase, doing });
        (processor.next, processor.phase) = (0, 0);
        self.put(who);
    }

    /// Back to what it has interrupted, which may be due meanwhile.
    pub fn end_handler(&mut self, who: usize) {
        let processor = &mut self.processors[who];
        if let Some(Interrupted { next, phase, doing }) = processor.interrupted.take() {
            (processor.next, processor.phase, processor.doing, processor.woken) = (next, phase, doing, true);
        }
        self.put(who);
    }
}
