//! Virtual time: what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds since the start of the job.
pub type Moment = u64;

/// What runs handlers: a processor, the messages from one node to another, or a thread that takes mappings away.
pub type Task = usize;

/// When each task goes on. Tasks of one moment go on in the order of their numbers, however they were put in.
pub struct Queue {
    heap: BinaryHeap<Reverse<(Moment, Task)>>,
    is_in: Vec<bool>,
}

impl Queue {
    pub fn new(tasks: usize) -> Self {
        Self { heap: BinaryHeap::new(), is_in: vec![false; tasks] }
    }

    /// The task goes on then, unless it does already.
    pub fn put(&mut self, at: Moment, task: Task) {
        if !std::mem::replace(&mut self.is_in[task], true) {
            self.heap.push(Reverse((at, task)));
        }
    }

    pub fn next(&mut self) -> Option<(Moment, Task)> {
        let Reverse((at, task)) = self.heap.pop()?;
        self.is_in[task] = false;
        Some((at, task))
    }
}
