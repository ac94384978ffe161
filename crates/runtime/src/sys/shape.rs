//! Where everything stands in a node segment: arithmetic only.
//!
//! The segment is one sparse memfd. Tables that grow with the heap are sized for the whole shared space and take memory
//! only where they are touched. Nothing in it is a pointer, so every process may map it anywhere.
//!
//! ```text
//!   Node | View .. | Slot .. | sync stripes and words | thread table | units | directories | managers
//!        | dirty and notice lists (two halves per view), their marks | pages read together, and again | free twins | heap tables
//!        | broadcast buffers | mesh | twins
//! ```

use finespun_heap::Layout;
use finespun_job::Job;
use finespun_protocol::Family;
use finespun_protocol::tmk::Seen;
use finespun_transport::Mesh;
use finespun_types::{Counters, PAGE_BYTES, UnitSize};

use super::records::{BUFFERS, Buffer, DIRECTORY_ROOM, MANAGER_ROOM, Node, Room, Stripe, UnitSlot, View};
use super::region::Region;
use super::slot::Slot;

use super::tmk_records as tmk;

/// Slots per node beside those of its processors: first seats, then those of threads that the program made itself, not
/// through Finespun, and the last for the service process.
pub const GUESTS: usize = 128;
/// Of these: places for threads of a program that makes more of them than there are processors.
pub const SEATS: usize = 96;
/// Tables of synchronization objects at each manager, each under a lock of its own.
pub const STRIPES: usize = 64;
/// Buckets of one stripe.
pub const STRIPE_BUCKETS: usize = 1 << 10;
/// Words beside one stripe, a cache line each: 1 MiB a manager, if all are touched.
pub const STRIPE_WORDS: usize = 1 << 8;
/// The most objects in use at once in one stripe: four million a manager.
pub const STRIPE_ENTRIES: usize = 1 << 16;

/// Units that a list keeps in their order: one page of them, and another of the half that is filled meanwhile.
const LISTED: usize = PAGE_BYTES / size_of::<u32>();

/// The most habits that a node keeps for each page.
const HABITS_PER_PAGE: usize = 4;

/// The least room for diffs, and all of it for diffs that come by messages: each is there from its arrival to the last answer of its fault.
const DIFF_BYTES_MIN: usize = 256 << 20;
/// The most room for a node's diffs, in multiples of 16 bytes a 32-bit number.
const DIFF_BYTES_MAX: usize = 16 << 30;

/// The places of all tables of a segment, the same for all nodes of a job.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Whose states stand in the tables of units.
    pub family: Family,
    /// Nodes of the job.
    pub nodes: usize,
    /// Views per node.
    pub views: usize,
    /// Threads per view.
    pub threads: usize,
    /// The size of a unit.
    pub unit: UnitSize,
    /// Units of the shared space, most of them never used.
    pub pages: usize,
    /// The heap's address policy.
    pub layout: Layout,
    /// The node's own block.
    pub node: Region,
    /// One block per view.
    pub view: Region,
    /// One slot per processor of the node, then the guests.
    pub slot: Region,
    /// Synchronization tables.
    pub stripe: Region,
    /// Their buckets.
    pub bucket: Region,
    /// Their entries.
    pub entry: Region,
    /// The words beside them.
    pub word: Region,
    /// The words of this node's parts in mutexes that migrate.
    pub own_word: Region,
    /// Their waiters: a slot for every waiter of the job in each stripe.
    pub waiter: Region,
    /// The job's threads, by processor, then by guest (node 0).
    pub thread: Region,
    /// A slot per unit.
    pub units: Region,
    /// Directory entries.
    pub directory: Region,
    /// Managers' entries: homes by first touch.
    pub managers: Region,
    /// Units in a half of a list, see [`super::lists`]: all, where an interval ends with the whole list at once.
    pub list_half: usize,
    /// Dirty lists: two halves for each view.
    pub dirty: Region,
    /// Lists of write notices, likewise.
    pub notice: Region,
    /// Marks of dirty lists: a bit for each unit and view.
    pub dirty_marks: Region,
    /// Marks of lists of write notices, likewise.
    pub notice_marks: Region,
    /// A bit for each page and view: read together with the page below. See `policy/history.rs`.
    pub neighbours: Region,
    /// Pages side by side that share a habit: more than one where a node has many views, so that tables do not grow with their number.
    pub pages_per_habit: usize,
    /// Habits of each view: see `policy/habit.rs`.
    pub habits: Region,
    /// Stack of free twins.
    pub free_twin: Region,
    /// The heap's account (node 0).
    pub heap: Region,
    /// The heap's entries of pages.
    pub heap_page: Region,
    /// The heap's pages of small allocations.
    pub heap_span: Region,
    /// Labels of broadcast buffers.
    pub buffer: Region,
    /// Their pages.
    pub buffer_page: Region,
    /// The buffer of each unit.
    pub buffer_of: Region,
    /// The transport's memory.
    pub mesh: Region,
    /// Twins.
    pub twin: Region,
    /// What lazy release consistency keeps; of no size in other jobs.
    pub tmk: tmk::Regions,
    /// Bytes of the whole segment.
    pub bytes: usize,
}

/// One number for all that processes of a job must agree on.
#[must_use]
pub const fn fingerprint() -> u64 {
    let sizes = [
        size_of::<Node>(),
        size_of::<View>(),
        size_of::<Slot>(),
        size_of::<Stripe>(),
        size_of::<UnitSlot>(),
        size_of::<Buffer>(),
        BUFFERS,
        DIRECTORY_ROOM,
        MANAGER_ROOM,
        size_of::<tmk::TmkNode>(),
        size_of::<tmk::Copy>(),
        tmk::LOG_WORDS,
        tmk::LOG_INTERVALS,
        size_of::<finespun_sync::Entry>(),
        size_of::<finespun_heap::Header>(),
        size_of::<Counters>(),
        Mesh::bytes(2),
        GUESTS,
        SEATS,
        STRIPES,
        STRIPE_BUCKETS,
        STRIPE_ENTRIES,
        STRIPE_WORDS,
        LISTED,
        size_of::<finespun_sync::Word>(),
    ];
    let mut hash = fnv(0xcbf2_9ce4_8422_2325, env!("CARGO_PKG_VERSION").len() as u64);
    let mut index = 0;
    while index < sizes.len() {
        hash = fnv(hash, sizes[index] as u64);
        index += 1;
    }
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    index = 0;
    while index < version.len() {
        hash = fnv(hash, version[index] as u64);
        index += 1;
    }
    hash
}

const fn fnv(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x100_0000_01b3)
}

/// Lays one table after the other.
struct Builder(usize);

impl Builder {
    fn take<T>(&mut self, len: usize) -> Region {
        self.bytes(len * size_of::<T>(), len)
    }

    /// Starts on a page, so that neighbours never share one.
    fn bytes(&mut self, bytes: usize, len: usize) -> Region {
        let offset = self.0;
        self.0 = (offset + bytes).next_multiple_of(PAGE_BYTES);
        Region { offset, len }
    }

    fn tmk(&mut self, job: &Job, pages: usize) -> tmk::Regions {
        let lazy = job.family() == Family::Tmk;
        let (nodes, pages) = if lazy { (job.nodes as usize, pages) } else { (0, 0) };
        let bytes = if lazy { DIFF_BYTES_MAX.min(DIFF_BYTES_MIN.max(job.heap_bytes as usize)) } else { 0 };
        let came = if lazy && job.sends_messages() { DIFF_BYTES_MIN } else { 0 };
        let time = tmk::time_words(nodes);
        tmk::Regions {
            node: self.take::<tmk::TmkNode>(usize::from(lazy)),
            times: self.take::<u32>(if lazy { tmk::times_words(nodes) } else { 0 }),
            objects: self.take::<u32>(if lazy { tmk::OBJECT_TIMES * time } else { 0 }),
            copies: self.take::<tmk::Copy>(pages),
            writers: self.take::<Seen>(pages * nodes),
            places: self.take::<u32>(nodes * tmk::LOG_INTERVALS),
            words: self.take::<u32>(nodes * tmk::LOG_WORDS),
            kept: self.bytes(bytes, bytes),
            came: self.bytes(came, came),
        }
    }
}

impl Shape {
    /// The shape of a job's segments.
    ///
    /// # Panics
    /// If the job's counts are out of range; whoever makes a job checks them.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let (nodes, views, threads) = (job.nodes as usize, job.views as usize, job.threads as usize);
        let unit = job.unit();
        assert_eq!(unit, UnitSize::PAGE, "frames, twins and diffs are of whole pages, one for each unit");
        let limit_pages = u32::try_from(unit.units_for(job.heap_bytes)).unwrap_or(u32::MAX);
        let layout =
            Layout::new(limit_pages, nodes as u32, unit).expect("whoever makes a job checks its heap and its nodes");
        let pages = layout.pages() as usize;
        let own = views * threads;
        let waiters = nodes * (own + GUESTS);
        let buffers = if job.family() == Family::Broadcasting { BUFFERS } else { 0 };
        let list_half = if job.family() == Family::Tmk { pages } else { LISTED.min(pages) };
        let pages_per_habit = views.div_ceil(HABITS_PER_PAGE);
        let mut next = Builder(0);
        let mut shape = Self {
            family: job.family(),
            nodes,
            views,
            threads,
            unit,
            pages,
            layout,
            node: next.take::<Node>(1),
            view: next.take::<View>(views),
            slot: next.take::<Slot>(own + GUESTS),
            stripe: next.take::<Stripe>(STRIPES),
            bucket: next.take::<u32>(STRIPES * STRIPE_BUCKETS),
            entry: next.take::<finespun_sync::Entry>(STRIPES * STRIPE_ENTRIES),
            word: next.take::<finespun_sync::Word>(STRIPES * STRIPE_WORDS),
            own_word: next.take::<finespun_sync::Word>(STRIPES * STRIPE_WORDS),
            waiter: next.take::<finespun_sync::Waiter>(STRIPES * waiters),
            thread: next.take::<finespun_sync::threads::Slot>(waiters),
            units: next.take::<UnitSlot>(pages),
            directory: next.take::<Room<DIRECTORY_ROOM>>(pages),
            managers: next.take::<Room<MANAGER_ROOM>>(pages),
            list_half,
            dirty: next.take::<u32>(2 * views * list_half),
            notice: next.take::<u32>(2 * views * list_half),
            dirty_marks: next.take::<u64>(views * pages.div_ceil(64)),
            notice_marks: next.take::<u64>(views * pages.div_ceil(64)),
            neighbours: next.take::<u64>(views * pages.div_ceil(64)),
            pages_per_habit,
            habits: next.take::<u16>(views * pages.div_ceil(pages_per_habit)),
            free_twin: next.take::<u32>(pages),
            heap: next.take::<finespun_heap::Header>(1),
            heap_page: next.take::<finespun_heap::Page>(pages),
            heap_span: next.take::<finespun_heap::Span>(layout.limit_pages() as usize),
            buffer: next.take::<Buffer>(buffers),
            buffer_page: next.bytes(unit.bytes_of(buffers), buffers),
            buffer_of: next.take::<u32>(if buffers > 0 { pages } else { 0 }),
            mesh: next.bytes(if job.sends_messages() { Mesh::bytes(nodes) } else { 0 }, 1),
            twin: next.bytes(unit.bytes_of(pages), pages),
            tmk: next.tmk(job, pages),
            bytes: 0,
        };
        shape.bytes = next.0;
        shape
    }

    /// The most bytes that tables of one node take for a page that it is home and manager of, whatever is done with it: what each view
    /// keeps of it is three bits, two marks of lists and one of the prefetch, and its share of a habit. (Only node 0 has the heap's entry.)
    #[must_use]
    pub const fn table_bytes_per_page(&self) -> usize {
        let bits = 3 * self.views;
        let habits = size_of::<u16>() * self.views.div_ceil(self.pages_per_habit);
        let buffer = if self.buffer.len > 0 { size_of::<u32>() } else { 0 };
        let lazy = if self.tmk.copies.len > 0 {
            let lists = 2 * 2 * self.views * size_of::<u32>();
            size_of::<tmk::Copy>() + self.nodes * size_of::<Seen>() + lists
        } else {
            0
        };
        let unit = size_of::<UnitSlot>() + DIRECTORY_ROOM + MANAGER_ROOM;
        unit + bits.div_ceil(8) + habits + size_of::<u32>() + buffer + lazy + size_of::<finespun_heap::Page>()
    }

    /// Bytes of a node's frames.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        self.unit.bytes_of(self.pages)
    }

    /// Bytes of all twins that a node may have at once.
    #[must_use]
    pub const fn twin_bytes(&self) -> usize {
        self.unit.bytes_of(self.twin.len)
    }

    /// Processors of one node.
    #[must_use]
    pub const fn processors_per_node(&self) -> usize {
        self.views * self.threads
    }

    /// Processors of the job.
    #[must_use]
    pub const fn processors(&self) -> usize {
        self.nodes * self.processors_per_node()
    }

    /// The view whose thread runs on a slot: a processor's, or a seat's.
    #[must_use]
    pub const fn view_of_place(&self, slot: usize) -> usize {
        let own = self.processors_per_node();
        if slot < own { slot / self.threads } else { (slot - own) % self.views }
    }

    /// The slots whose threads run in a view: its processors', then its seats.
    pub fn places_of_view(&self, view: usize) -> impl Iterator<Item = usize> + use<> {
        let (own, views) = (self.processors_per_node(), self.views);
        (view * self.threads..(view + 1) * self.threads).chain((own + view..own + SEATS).step_by(views))
    }

    /// Everybody of the job who can wait: processors, then the nodes' guests.
    #[must_use]
    pub const fn waiters(&self) -> usize {
        self.processors() + self.nodes * GUESTS
    }
}

#[cfg(test)]
mod tests {
    use finespun_job::Transport;
    use finespun_job::protocols::PROTOCOLS;
    use finespun_types::VIEWS_MAX;

    use super::*;

    fn job(protocol: &str, transport: Transport, views: u32) -> Job {
        Job { nodes: 2, views, transport, heap_bytes: 1 << 30, protocol: protocol.into(), ..Job::alone() }
    }

    #[test]
    fn tables_take_a_twentieth_of_a_page_at_most_however_many_processes_a_node_has() {
        for named in PROTOCOLS.iter().filter(|named| named.family != Family::Tmk) {
            for transport in [Transport::Shm, Transport::Tcp] {
                for views in 1..=VIEWS_MAX as u32 {
                    if named.over(transport).is_some() {
                        let bytes = Shape::of(&job(named.name, transport, views)).table_bytes_per_page();
                        assert!(bytes * 20 <= PAGE_BYTES, "{}: {bytes} with {views} views", named.name);
                    }
                }
            }
        }
    }

    #[test]
    fn what_grows_with_the_space_is_what_is_counted_for_a_page() {
        let shape = |gib: u64| Shape::of(&Job { heap_bytes: gib << 30, ..job("csm-2l", Transport::Shm, 32) });
        // Twins are counted by themselves, and a page of small allocations by the heap.
        let tables =
            |shape: &Shape| shape.bytes - shape.twin_bytes() - shape.heap_span.len * size_of::<finespun_heap::Span>();
        let (few, many) = (shape(1), shape(2));
        let each = (tables(&many) - tables(&few)) as f64 / (many.pages - few.pages) as f64;
        assert!((each - many.table_bytes_per_page() as f64).abs() < 1.0, "{each}");
    }

    #[test]
    fn each_processor_and_each_seat_of_a_node_runs_in_one_view() {
        let shape = Shape::of(&Job { threads: 3, ..job("csm-2l", Transport::Shm, 4) });
        let mut places: Vec<_> =
            (0..4).flat_map(|view| shape.places_of_view(view).map(move |place| (place, view))).collect();
        places.sort_unstable();
        assert!(places.iter().all(|&(place, view)| shape.view_of_place(place) == view));
        assert!(places.iter().map(|(place, _)| *place).eq(0..12 + SEATS), "every place once");
        assert_eq!((shape.processors_per_node(), shape.processors(), shape.waiters()), (12, 24, 24 + 2 * GUESTS));
    }

    #[test]
    fn a_protocol_s_own_tables_take_no_room_under_another() {
        let shape = |protocol| Shape::of(&job(protocol, Transport::Shm, 1));
        let (cashmere, broadcast, lazy) = (shape("csm-2l"), shape("csm-adb"), shape("tmk"));
        assert_eq!((cashmere.buffer_page.len, cashmere.tmk.words.len), (0, 0));
        assert!(broadcast.buffer_page.len > 0 && lazy.tmk.words.len > 0);
        assert_eq!(lazy.tmk.came.len, 0, "over shared memory no diff comes");
    }
}
