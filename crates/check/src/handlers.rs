//! Signal handlers of the program: they run while their thread waits for a lock, a flag or the barrier, and not while it waits in the
//! middle of a release, an acquire or a fault (`cashmere/sync.rs`).

use crate::driver::Run;
use crate::model::{Doing, Interrupted};
use crate::processor::first_of;
use crate::program::Op;
use crate::subject::{Quirk, Subject};

impl<P: Subject> Run<'_, P> {
    /// What a processor executes: its script, or the handler that has interrupted it.
    pub(crate) fn script(&self, processor: usize) -> &[Op] {
        let program = &self.rules.program;
        match self.world.processors[processor].interrupted {
            None => &program.scripts[processor],
            Some(_) => &program.handlers[processor],
        }
    }

    /// May a signal come to this processor now?
    pub(crate) fn takes_signal(&self, task: usize) -> bool {
        let processor = &self.world.processors[task];
        let can_come = self.world.signals > 0 && processor.interrupted.is_none();
        can_come && !self.rules.program.handlers[task].is_empty() && self.lets_signals_in(task)
    }

    fn lets_signals_in(&self, task: usize) -> bool {
        let processor = &self.world.processors[task];
        match processor.doing {
            Doing::Running => matches!(self.op(task), Some(Op::Lock(_) | Op::Await(_))),
            Doing::AtBarrier => true,
            Doing::Releasing => {
                self.has(Quirk::HandlerInRelease) && first_of(processor.taken & !processor.asleep).is_none()
            }
            Doing::Fault { .. } | Doing::Ahead { .. } | Doing::Acquiring => false,
        }
    }

    pub(crate) fn begin_handler(&mut self, task: usize) {
        let (node, view) = self.seat(task);
        self.world.signals -= 1;
        let processor = &mut self.world.processors[task];
        let (next, doing, since) = (processor.next, processor.doing, processor.since);
        processor.interrupted = Some(Interrupted { next, doing, since });
        (processor.next, processor.doing, processor.since) = (0, Doing::Running, 0);
        self.log(|| format!("{node:?} {view:?} p{task} begins its handler"));
    }

    /// Back to what the handler has interrupted, if it has done its last operation.
    pub(crate) fn end_handler_if_through(&mut self, task: usize) {
        if self.op(task).is_some() {
            return;
        }
        let processor = &mut self.world.processors[task];
        if let Some(Interrupted { next, doing, since }) = processor.interrupted.take() {
            (processor.next, processor.doing, processor.since) = (next, doing, since);
        }
    }
}
