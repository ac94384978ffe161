//! The two engines of memory consistency, as the rest of a job sees them: home-based ([`crate::home`]), or lazy ([`crate::lazy`]). The live
//! runtime chooses between the same two.

use std::fmt::Debug;

use finespun_types::Access;

use crate::clock::Task;
use crate::job::Job;
use crate::memory::Page;
use crate::objects::Request;
use crate::program::{Op, Shape};

/// What keeps the copies of a job's units consistent. Where an event waits for a lock, the engine puts its task into the lock's queue, and
/// the task comes again.
pub trait Engine: Sized {
    /// Loads return the last store, races or not.
    const SEQUENTIAL: bool;
    /// Of two racing stores that meet in one word, each copy ends with the same.
    const ORDERS_RACES: bool;
    /// Does the manager of an object hear of every release, and tell at every grant? Then mutexes do not migrate, and no word beside a
    /// table is changed without it.
    const TELLS_MANAGERS: bool;
    /// A mutex that migrates goes on inside the node without a release, and not only inside the view.
    const HANDS_OVER_IN_NODE: bool;

    /// What a processor is in the middle of.
    type Stage: Debug;
    /// What a table answers about an event of a processor.
    type Outcome;
    /// A message about a unit.
    type Letter;
    /// What goes along with a request or an answer of synchronization.
    type Along;

    fn new(shape: Shape) -> Self;
    /// One more unit.
    fn grow(&mut self);
    fn page(&mut self, node: usize, unit: usize) -> &mut Page;
    /// Bytes of a message about a unit.
    fn bytes(letter: &Self::Letter) -> usize;
    /// Bytes that go along with a message of synchronization.
    fn bytes_along(along: &Self::Along) -> usize;

    /// Tasks beside processors and channels.
    fn more_tasks(shape: Shape) -> usize;
    /// One of those goes on.
    fn go_on_with_more(job: &mut Job<'_, Self>, task: Task);
    /// Performs the next action of the handler that the task runs; false if it runs none.
    fn step(job: &mut Job<'_, Self>, task: Task) -> bool;

    fn access(job: &mut Job<'_, Self>, who: usize, unit: usize) -> Access;
    fn begin_fault(job: &mut Job<'_, Self>, who: usize, unit: usize, writes: bool);
    fn begin_release(job: &mut Job<'_, Self>, who: usize);
    /// `op` is `None` where a thread begins.
    fn begin_acquire(job: &mut Job<'_, Self>, who: usize, op: Option<Op>);
    /// A processor goes on with a fault, a release or an acquire.
    fn go_on(job: &mut Job<'_, Self>, who: usize);
    /// All that the processor's event brought about is done.
    fn conclude(job: &mut Job<'_, Self>, who: usize, outcome: Self::Outcome);
    /// The processor has the answer that it waited for. Does the engine use the meeting of all for something of its own? Then
    /// [`Job::end_answer`] follows later.
    fn met(_job: &mut Job<'_, Self>, _who: usize, _op: Option<Op>) -> bool {
        false
    }

    /// May the next message of a channel be handled, or does it wait for a lock?
    fn may_receive(job: &mut Job<'_, Self>, task: Task, to: usize, unit: usize) -> bool;
    fn receive(job: &mut Job<'_, Self>, task: Task, way: (usize, usize), unit: usize, letter: Self::Letter);

    /// What goes along with a request to a manager.
    fn asks(job: &mut Job<'_, Self>, who: usize, manager: usize, request: &Request) -> Self::Along;
    /// The manager has it.
    fn asked(job: &mut Job<'_, Self>, who: usize, manager: usize, request: &Request, along: Self::Along);
    /// What goes along with an answer to a processor, or with its thread. `about`: by what it acquires, if it does.
    fn grants(job: &mut Job<'_, Self>, manager: usize, who: usize, about: Option<u64>) -> Self::Along;
    /// The processor's node has it.
    fn granted(job: &mut Job<'_, Self>, manager: usize, who: usize, along: Self::Along);

    /// The protocol's sentences about one unit.
    fn check(&self, unit: usize, in_flight: bool) -> Result<(), &'static str>;
    /// Is no lock held, and no handler under way?
    fn is_at_rest(&self) -> bool;
}
