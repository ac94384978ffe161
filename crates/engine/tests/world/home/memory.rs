//! What a node has under a home-based protocol: copies, twins, directory entries, views with their rights and lists.

use finespun_protocol::page::{Protocol, Time};
use finespun_types::{Access, PAGE_BYTES};

use crate::clock::Moment;
use crate::memory::{Diff, Lock, Page, WORDS};

/// What goes with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    Nothing,
    Page(Page),
    Diff(Diff),
}

impl Payload {
    /// So many bytes go over the network.
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Page(_) => PAGE_BYTES,
            Self::Diff(diff) => diff.bytes(),
        }
    }
}

/// What a node has of a unit, with the lock that covers it.
pub struct Slot<P: Protocol> {
    pub copy: P::Unit,
    pub directory: P::Directory,
    pub frame: Page,
    pub twin: Option<Page>,
    pub lock: Lock,
}

impl<P: Protocol> Default for Slot<P> {
    fn default() -> Self {
        Self {
            copy: P::Unit::default(),
            directory: P::Directory::default(),
            frame: [0; WORDS],
            twin: None,
            lock: Lock::default(),
        }
    }
}

impl<P: Protocol> Slot<P> {
    /// What the node has released of the page.
    pub fn released(&self) -> Page {
        self.twin.unwrap_or(self.frame)
    }

    /// The words in which the page that came differs from the twin, to both.
    pub fn merge(&mut self, came: &Page) {
        let twin = self.twin.get_or_insert(self.frame);
        let diff = Diff::of(came, twin);
        diff.apply(twin);
        diff.apply(&mut self.frame);
    }

    /// To the frame, and to the twin if there is one.
    pub fn update(&mut self, diff: &Diff, misses_twin: bool) {
        diff.apply(&mut self.frame);
        if let Some(twin) = self.twin.as_mut().filter(|_| !misses_twin) {
            diff.apply(twin);
        }
    }
}

/// A view: its rights and its lists.
#[derive(Default)]
pub struct View {
    /// By unit.
    pub access: Vec<Access>,
    pub dirty: Vec<usize>,
    pub noticed: Vec<usize>,
    /// Flushes begun and not done.
    pub open: u32,
    /// Releases exclude each other, and acquires.
    pub releasing: Lock,
    pub acquiring: Lock,
    /// When a page was mapped last.
    pub mapped_at: Moment,
}

/// A node.
pub struct Node<P: Protocol> {
    pub clock: Time,
    /// By unit.
    pub slots: Vec<Slot<P>>,
    pub views: Vec<View>,
    /// Releases, where they count.
    pub interval: u32,
    /// Broadcast buffers, the oldest first.
    pub buffers: Vec<(usize, Page)>,
}

impl<P: Protocol> Node<P> {
    pub fn new(views: usize) -> Self {
        let views = (0..views).map(|_| View::default()).collect();
        Self { clock: 0, slots: Vec::new(), views, interval: 0, buffers: Vec::new() }
    }

    /// One more unit.
    pub fn grow(&mut self) {
        self.slots.push(Slot::default());
        self.views.iter_mut().for_each(|view| view.access.push(Access::None));
    }

    pub fn tick(&mut self) -> Time {
        self.clock += 1;
        self.clock
    }

    /// What a broadcast buffer holds of a unit.
    pub fn buffered(&self, unit: usize) -> Option<Page> {
        self.buffers.iter().find(|(held, _)| *held == unit).map(|(_, page)| *page)
    }

    pub fn drop_buffer(&mut self, unit: usize) {
        self.buffers.retain(|(held, _)| *held != unit);
    }

    /// To a buffer; the oldest is given up if `most` are full.
    pub fn broadcast(&mut self, unit: usize, most: usize) {
        self.drop_buffer(unit);
        if self.buffers.len() == most {
            self.buffers.remove(0);
        }
        let page = self.slots[unit].released();
        self.buffers.push((unit, page));
    }
}
