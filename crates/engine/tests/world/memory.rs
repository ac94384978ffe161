//! Memory as a model: pages of a few words, diffs, and locks.

use finespun_types::PAGE_BYTES;

use crate::clock::Task;

/// Words of a page. Each stands for [`WORD_BYTES`] bytes.
pub const WORDS: usize = 16;
pub const WORD_BYTES: usize = PAGE_BYTES / WORDS;

pub type Page = [u32; WORDS];

/// The words in which a page differs from its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diff {
    changed: u16,
    words: Page,
}

impl Diff {
    pub fn of(frame: &Page, twin: &Page) -> Self {
        let differs = |word: &usize| frame[*word] != twin[*word];
        Self { changed: (0..WORDS).filter(differs).fold(0, |set, word| set | 1 << word), words: *frame }
    }

    pub const fn bytes(&self) -> usize {
        self.changed.count_ones() as usize * WORD_BYTES
    }

    pub const fn is_empty(&self) -> bool {
        self.changed == 0
    }

    pub fn apply(&self, page: &mut Page) {
        for word in (0..WORDS).filter(|word| self.changed & 1 << word != 0) {
            page[word] = self.words[word];
        }
    }
}

/// A lock with those who wait for it.
#[derive(Default)]
pub struct Lock {
    holder: Option<Task>,
    waiting: Vec<Task>,
}

impl Lock {
    pub fn is_free_for(&self, task: Task) -> bool {
        self.holder.is_none_or(|holder| holder == task)
    }

    pub const fn is_held(&self) -> bool {
        self.holder.is_some()
    }

    /// False if the task has it already.
    pub fn take(&mut self, task: Task) -> bool {
        assert!(self.is_free_for(task), "a task asks before it takes a lock");
        self.holder.replace(task).is_none()
    }

    /// Gives it back, to nobody; all that waited look again.
    pub fn give_back(&mut self) -> Vec<Task> {
        self.holder = None;
        std::mem::take(&mut self.waiting)
    }

    /// If it is not free for the task, that waits.
    pub fn is_free_or_queues(&mut self, task: Task) -> bool {
        let free = self.is_free_for(task);
        if !free {
            self.queue(task);
        }
        free
    }

    pub fn queue(&mut self, task: Task) {
        if !self.waiting.contains(&task) {
            self.waiting.push(task);
        }
    }
}
