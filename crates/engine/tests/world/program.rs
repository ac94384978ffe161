//! What the processors of a job do: a script each, of loads, stores and calls.

use std::fmt;

use finespun_heap::Policy;

/// How many processors there are, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub nodes: usize,
    /// Of each node.
    pub views: usize,
    /// Of each view.
    pub threads: usize,
    /// Of each node: the last so many of its processors never come to the barrier of all.
    pub outside: usize,
}

impl Shape {
    pub const fn per_node(&self) -> usize {
        self.views * self.threads
    }

    pub const fn meeting_per_node(&self) -> usize {
        self.per_node() - self.outside
    }

    /// Does a processor come to the barrier of all?
    pub const fn meets(&self, who: usize) -> bool {
        who % self.per_node() < self.meeting_per_node()
    }

    pub const fn node_of(&self, who: usize) -> usize {
        who / self.per_node()
    }

    pub const fn processors(&self) -> usize {
        self.nodes * self.per_node()
    }
}

/// The most processors of a job.
pub const PROCESSORS_MAX: usize = 16;

/// A word of an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Which allocation, in the order of the program.
    pub object: u8,
    pub word: u8,
}

/// A mutex, condition, flag or barrier.
pub type Sync = u8;

/// The barrier of all.
pub const ALL: Sync = 0;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Load(Word),
    /// A value that the word never had.
    Store(Word),
    /// The value that the word had before its last store.
    PutBack(Word),
    Lock(Sync),
    Unlock(Sync),
    /// Under the mutex: waits for the condition until the counter is so high.
    Test {
        condition: Sync,
        mutex: Sync,
        counter: Word,
        until: u32,
    },
    Signal(Sync),
    Broadcast(Sync),
    /// Of all processors.
    Meet(Sync),
    /// Of some.
    Barrier {
        barrier: Sync,
        count: u8,
    },
    Set {
        flag: Sync,
        value: u32,
    },
    Await {
        flag: Sync,
        value: u32,
    },
    Allocate {
        object: u8,
        words: u8,
        policy: Policy,
    },
    Free(u8),
    /// Makes this processor's thread.
    Start(u8),
    Join(u8),
}

/// A program. Processor 0 runs its first script at once, the others run theirs as threads.
#[derive(Clone, Debug)]
pub struct Program {
    pub shape: Shape,
    pub scripts: Vec<Vec<Op>>,
    /// By processor: the word that its signal handler counts up. No other processor uses it before the processor's end.
    pub handlers: Vec<Option<Word>>,
    /// Words that all processors use as they like.
    pub racy: Vec<Word>,
    /// How many allocations it makes.
    pub objects: usize,
    /// How many mutexes, conditions, flags and barriers it has.
    pub syncs: usize,
}

impl Program {
    pub fn operations(&self) -> usize {
        self.scripts.iter().map(Vec::len).sum()
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "o{}.{}", self.object, self.word)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { nodes, views, threads, outside } = self.shape;
        writeln!(f, "  {nodes} nodes, {views} views each, {threads} threads each, {outside} outside the barrier")?;
        for (processor, script) in self.scripts.iter().enumerate() {
            let ops: Vec<String> = script.iter().map(|op| format!("{op:?}")).collect();
            let handler = self.handlers[processor].map_or(String::new(), |word| format!(" (its handler: {word:?})"));
            writeln!(f, "  p{processor}{handler}: {}", ops.join("; "))?;
        }
        if !self.racy.is_empty() {
            writeln!(f, "  racy: {:?}", self.racy)?;
        }
        Ok(())
    }
}
