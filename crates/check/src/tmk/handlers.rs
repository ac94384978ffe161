//! Signal handlers of the program: they run while their thread waits for the grant of a lock, a flag or a barrier, and not during a collection.

use super::bugs::Bug;
use super::driver::Run;
use super::world::Doing;
use crate::program::Op;

impl Run<'_> {
    /// What a processor executes: its script, or the handler that has interrupted it.
    pub(super) fn script(&self, processor: usize) -> &[Op] {
        let program = &self.rules.program;
        match self.world.processors[processor].interrupted {
            None => &program.scripts[processor],
            Some(_) => &program.handlers[processor],
        }
    }

    /// May a signal come to this processor now?
    pub(super) fn takes_signal(&self, task: usize) -> bool {
        let processor = &self.world.processors[task];
        let can_come = self.world.signals > 0 && processor.interrupted.is_none();
        let lets_in = match processor.doing {
            Doing::Waiting | Doing::Granted => !self.collects(task) || self.has(Bug::HandlerInCollection),
            Doing::Running | Doing::Fault { .. } | Doing::Closing { .. } | Doing::Acquiring { .. } => false,
            Doing::Keeping { .. } | Doing::Collecting { .. } => false,
        };
        can_come && lets_in && !self.rules.program.handlers[task].is_empty()
    }

    /// Is this processor behind the barrier itself, at a further meeting of a collection?
    fn collects(&self, task: usize) -> bool {
        self.op(task) == Some(&Op::Barrier) && self.world.processors[task].meeting > 0
    }

    pub(super) fn begin_handler(&mut self, task: usize) {
        self.world.signals -= 1;
        let processor = &mut self.world.processors[task];
        let doing = std::mem::replace(&mut processor.doing, Doing::Running);
        processor.interrupted = Some((processor.next, doing));
        processor.next = 0;
        self.log(|| format!("p{task} begins its handler"));
    }

    /// Back to what the handler has interrupted, if it has done its last operation.
    pub(super) fn end_handler_if_through(&mut self, task: usize) {
        if self.op(task).is_some() {
            return;
        }
        let processor = &mut self.world.processors[task];
        if let Some((next, doing)) = processor.interrupted.take() {
            (processor.next, processor.doing) = (next, doing);
        }
    }
}
