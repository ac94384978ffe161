//! The threads of a program: turns, results, and joins that come twice or too late.

use std::collections::{HashMap, HashSet, VecDeque};

use finespun_sync::threads::{Action, Error, Event, Handle, Header, Seats, Slot, State, Threads};
use finespun_types::ProcessorId;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Job {
    header: Header,
    slots: Vec<Slot>,
    per_node: u32,
}

impl Job {
    /// A job in which processor 0 runs main.
    fn new(nodes: u32, per_node: u32) -> Self {
        let slots = vec![Slot::default(); (nodes * per_node) as usize];
        let mut job = Self { header: Header::default(), slots, per_node };
        assert_eq!(job.on(Event::Begin { who: ProcessorId(0) }), Ok(vec![]));
        job
    }

    fn threads(&mut self) -> Threads<'_> {
        Threads::new(&mut self.header, &mut self.slots, self.per_node)
    }

    fn on(&mut self, event: Event) -> Result<Vec<Action>, Error> {
        let mut actions = Vec::new();
        self.threads().on(event, &mut |action| actions.push(action)).map(|()| actions)
    }

    /// Where the next thread runs, and its handle.
    fn create(&mut self) -> Option<(ProcessorId, Handle)> {
        let event = Event::Create { on: None, by: MAIN, function: 0x40, argument: 7 };
        match self.on(event).expect("a create is not refused with an error").as_slice() {
            [Action::Start { who, function: 0x40, argument: 7, .. }, Action::Created { by: MAIN, thread }] => {
                assert_eq!(thread.processor(), *who);
                Some((*who, *thread))
            }
            [Action::Refused { by: MAIN, .. }] => None,
            other => panic!("{other:?}"),
        }
    }
}

const MAIN: ProcessorId = ProcessorId(0);

#[test]
fn threads_go_to_the_nodes_by_turns_until_all_processors_are_taken() {
    let mut job = Job::new(3, 2);
    let places: Vec<u32> = std::iter::from_fn(|| job.create()).map(|(who, _)| who.0).collect();
    assert_eq!(places, [1, 2, 4, 3, 5]);
}

#[test]
fn a_join_gets_the_result_whether_it_comes_before_or_after_the_end() {
    let mut job = Job::new(1, 3);
    let (first, early) = job.create().expect("idle");
    let (second, late) = job.create().expect("idle");
    assert_eq!(job.on(Event::Join { thread: early, by: MAIN }), Ok(vec![]));
    assert_eq!(job.on(Event::Finished { who: first, result: 11 }), Ok(vec![Action::Joined { by: MAIN, result: 11 }]));
    assert_eq!(job.on(Event::Finished { who: second, result: 22 }), Ok(vec![]));
    assert_eq!(job.on(Event::Join { thread: late, by: MAIN }), Ok(vec![Action::Joined { by: MAIN, result: 22 }]));
}

#[test]
fn a_stale_or_double_or_invented_join_is_recognised() {
    let mut job = Job::new(1, 2);
    let (who, thread) = job.create().expect("idle");
    assert_eq!(job.on(Event::Join { thread, by: who }), Err(Error::JoinSelf { thread }));
    assert_eq!(job.on(Event::Join { thread, by: MAIN }), Ok(vec![]));
    let other = ProcessorId(9);
    assert_eq!(job.on(Event::Join { thread, by: other }), Err(Error::JoinPending { thread, joiner: MAIN }));
    job.on(Event::Finished { who, result: 0 }).expect("it runs");
    assert_eq!(job.on(Event::Join { thread, by: MAIN }), Err(Error::JoinedAlready { thread }));
    let (_, next) = job.create().expect("idle again");
    assert_ne!(thread, next);
    assert_eq!(job.on(Event::Join { thread, by: MAIN }), Err(Error::JoinedAlready { thread }));
    for bits in [0, 1, 1 << 32, 77 << 32 | 1, u64::MAX] {
        let thread = Handle(bits);
        assert_eq!(job.on(Event::Join { thread, by: MAIN }), Err(Error::NoThread { thread }));
    }
}

#[test]
fn a_processor_is_idle_again_only_after_the_join() {
    let mut job = Job::new(1, 2);
    let (who, thread) = job.create().expect("idle");
    job.on(Event::Finished { who, result: 5 }).expect("it runs");
    let create = Event::Create { on: Some(who), by: MAIN, function: 0, argument: 0 };
    assert_eq!(job.on(create), Ok(vec![Action::Refused { by: MAIN, unjoined: 1 }]));
    job.on(Event::Join { thread, by: MAIN }).expect("it has ended");
    assert!(matches!(job.on(create).as_deref(), Ok([Action::Start { .. }, Action::Created { .. }])));
}

#[test]
fn a_processor_that_runs_main_is_never_chosen() {
    let mut job = Job::new(2, 1);
    let on_main = Event::Create { on: Some(MAIN), by: ProcessorId(1), function: 0, argument: 0 };
    assert_eq!(job.on(on_main), Ok(vec![Action::Refused { by: ProcessorId(1), unjoined: 0 }]));
    let nowhere = Event::Create { on: Some(ProcessorId(2)), by: MAIN, function: 0, argument: 0 };
    assert_eq!(job.on(nowhere), Err(Error::NoProcessor { given: ProcessorId(2), processors: 2 }));
    let end_of_main = Event::Finished { who: MAIN, result: 0 };
    assert_eq!(job.on(end_of_main), Err(Error::Impossible { state: State::Main, event: end_of_main }));
}

/// Main creates `goal` threads on `nodes` nodes of `per_node`, which end at any time, and joins each once, at any
/// time: every interleaving. The number of states is returned.
fn explore(nodes: u32, per_node: u32, goal: usize) -> usize {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        job: Job,
        created: Vec<Handle>,
        running: Vec<ProcessorId>,
        to_join: Vec<Handle>,
        joining: Option<Handle>,
    }
    let first =
        World { job: Job::new(nodes, per_node), created: vec![], running: vec![], to_join: vec![], joining: None };
    let mut seen = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);
    while let Some(world) = queue.pop_front() {
        let mut next = Vec::new();
        if world.joining.is_none() && world.created.len() < goal {
            let mut world = world.clone();
            let taken =
                world.running.len() + world.to_join.iter().filter(|t| !world.running.contains(&t.processor())).count();
            match world.job.create() {
                Some((who, thread)) => {
                    assert!(!world.running.contains(&who) && !world.created.contains(&thread));
                    world.running.push(who);
                    world.created.push(thread);
                    world.to_join.push(thread);
                    next.push(world);
                }
                None => assert_eq!(taken as u32, nodes * per_node - 1, "a create is refused only when all are taken"),
            }
        }
        for (i, who) in world.running.iter().enumerate() {
            let mut world = world.clone();
            world.running.remove(i);
            let actions = world.job.on(Event::Finished { who: *who, result: who.0.into() }).expect("it runs");
            let awaited = world.joining.take_if(|thread| thread.processor() == *who).is_some();
            let joined = Action::Joined { by: MAIN, result: who.0.into() };
            assert_eq!(actions, if awaited { vec![joined] } else { vec![] });
            next.push(world);
        }
        for (i, thread) in world.to_join.iter().enumerate().filter(|_| world.joining.is_none()) {
            let mut world = world.clone();
            world.to_join.remove(i);
            let actions = world.job.on(Event::Join { thread: *thread, by: MAIN }).expect("it is joined once");
            let runs = world.running.contains(&thread.processor());
            assert_eq!(actions.is_empty(), runs, "a join waits exactly while the thread runs");
            world.joining = runs.then_some(*thread);
            next.push(world);
        }
        if next.is_empty() {
            assert_eq!(world.created.len(), goal, "nobody waits for ever");
            let mut job = world.job.clone();
            let idle: HashMap<u32, bool> = (0..nodes * per_node)
                .map(|who| (who, job.threads().state(ProcessorId(who)) == Some(State::Idle)))
                .collect();
            assert!(idle.iter().all(|(who, idle)| *idle == (*who != 0)), "{idle:?}");
        }
        for world in next {
            if seen.insert(world.clone()) {
                queue.push_back(world);
            }
        }
    }
    seen.len()
}

#[test]
fn every_interleaving_of_creates_ends_and_joins_leaves_all_processors_idle() {
    assert_eq!((explore(2, 2, 3), explore(1, 3, 4)), (104, 182));
}

/// One processor and three numbers above it for each node, of which two are seats.
const SEATS: Seats = Seats { numbers: 3, usable: 2 };

struct Crowd {
    header: Header,
    slots: Vec<Slot>,
}

impl Crowd {
    fn new(nodes: usize) -> Self {
        let mut crowd = Self { header: Header::default(), slots: vec![Slot::default(); nodes * 4] };
        crowd.on(Event::Begin { who: MAIN }).expect("nothing is in the way");
        crowd
    }

    fn on(&mut self, event: Event) -> Result<Vec<Action>, Error> {
        let mut actions = Vec::new();
        Threads::with_seats(&mut self.header, &mut self.slots, 1, SEATS)
            .on(event, &mut |action| actions.push(action))
            .map(|()| actions)
    }

    fn spawn(&mut self, near: Option<u32>) -> Option<Handle> {
        let actions = self.on(Event::Spawn { near, by: MAIN, function: 1, argument: 2 }).expect("not an error");
        actions.into_iter().find_map(|action| match action {
            Action::Created { thread, .. } => Some(thread),
            Action::Start { .. } | Action::Refused { .. } | Action::Joined { .. } | Action::Done { .. } => None,
        })
    }
}

#[test]
fn threads_beyond_the_processors_take_seats_where_most_are_left() {
    let mut crowd = Crowd::new(2);
    let mut places = Vec::new();
    while let Some(thread) = crowd.spawn(None) {
        places.push(thread.processor().0);
    }
    // The idle processor first; then seats, by turns: 2 and 3 are node 0's, 5 and 6 node 1's.
    assert_eq!(places, [1, 2, 5, 3, 6]);
    let mut crowd = Crowd::new(2);
    let near = |crowd: &mut Crowd, node| crowd.spawn(Some(node)).map(|thread| thread.processor().0);
    let places = [0, 0, 0, 1, 1].map(|node| near(&mut crowd, node));
    assert_eq!(places, [Some(2), Some(3), None, Some(1), Some(5)]);
    let nowhere = Event::Spawn { near: Some(2), by: MAIN, function: 1, argument: 2 };
    assert_eq!(crowd.on(nowhere), Err(Error::NoNode { given: 2, nodes: 2 }));
}

#[test]
fn a_detached_thread_leaves_its_place_whenever_it_ends_and_cannot_be_joined() {
    let mut crowd = Crowd::new(1);
    let [first, second] = [(); 2].map(|()| crowd.spawn(None).expect("there are seats"));
    let detach = |thread| Event::Detach { thread, by: MAIN };
    let end = |thread: Handle| Event::Finished { who: thread.processor(), result: 5 };
    assert_eq!(crowd.on(detach(first)), Ok(vec![Action::Done { by: MAIN }]));
    assert_eq!(crowd.on(Event::Join { thread: first, by: MAIN }), Err(Error::Detached { thread: first }));
    assert_eq!(crowd.on(detach(first)), Err(Error::Detached { thread: first }));
    assert_eq!(crowd.on(end(first)), Ok(vec![]));
    assert_eq!(crowd.on(end(second)), Ok(vec![]));
    assert_eq!(crowd.on(detach(second)), Ok(vec![Action::Done { by: MAIN }]));
    assert_eq!(crowd.on(detach(second)), Err(Error::JoinedAlready { thread: second }));
    let again = crowd.spawn(None).expect("idle again");
    assert_eq!(again.processor(), first.processor());
    assert_eq!(crowd.on(Event::Join { thread: again, by: MAIN }), Ok(vec![]));
    assert_eq!(crowd.on(detach(again)), Err(Error::JoinPending { thread: again, joiner: MAIN }));
    // A thread may detach itself.
    let own = crowd.spawn(None).expect("idle");
    let by = own.processor();
    assert_eq!(crowd.on(Event::Detach { thread: own, by }), Ok(vec![Action::Done { by }]));
}

#[test]
fn who_waits_for_quiet_is_answered_when_the_last_thread_ends() {
    let mut crowd = Crowd::new(2);
    let done = Ok(vec![Action::Done { by: MAIN }]);
    assert_eq!(crowd.on(Event::Quiet { by: MAIN }), done);
    let [first, second] = [(); 2].map(|()| crowd.spawn(None).expect("there are seats"));
    crowd.on(Event::Detach { thread: second, by: MAIN }).expect("it runs");
    assert_eq!(crowd.on(Event::Quiet { by: MAIN }), Ok(vec![]));
    assert_eq!(crowd.on(Event::Finished { who: first.processor(), result: 0 }), Ok(vec![]));
    assert_eq!(crowd.on(Event::Finished { who: second.processor(), result: 0 }), done);
}

/// Main makes three threads on one node with one other place beside a seat; each ends at any time, and is joined or
/// detached at any time: every interleaving.
#[test]
fn every_interleaving_of_spawns_ends_joins_and_detaches_leaves_all_places_idle() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        header: Header,
        slots: Vec<Slot>,
        left: u32,
        running: Vec<ProcessorId>,
        open: Vec<Handle>,
        joining: Option<Handle>,
    }
    let fresh = Crowd::new(1);
    let first =
        World { header: fresh.header, slots: fresh.slots, left: 3, running: vec![], open: vec![], joining: None };
    let (mut seen, mut queue) = (HashSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(world) = queue.pop_front() {
        let mut next = Vec::new();
        let mut take = |event: Event, change: &dyn Fn(&mut World, &[Action])| {
            let mut world = world.clone();
            let mut crowd = Crowd { header: world.header, slots: std::mem::take(&mut world.slots) };
            let actions = crowd.on(event).expect("not refused");
            (world.header, world.slots) = (crowd.header, crowd.slots);
            change(&mut world, &actions);
            next.push(world);
        };
        if world.left > 0 && world.joining.is_none() {
            take(Event::Spawn { near: None, by: MAIN, function: 1, argument: 2 }, &|world, actions| match actions {
                [Action::Start { who, .. }, Action::Created { thread, .. }] => {
                    assert!(!world.running.contains(who));
                    world.left -= 1;
                    world.running.push(*who);
                    world.open.push(*thread);
                }
                other => {
                    assert!(matches!(other, [Action::Refused { .. }]), "{other:?}");
                    assert!(world.running.len() + world.open.len() >= 2, "refused though a place is idle");
                }
            });
        }
        for (index, &who) in world.running.iter().enumerate() {
            take(Event::Finished { who, result: 7 }, &|world, actions| {
                world.running.remove(index);
                let awaited = world.joining.take_if(|thread| thread.processor() == who).is_some();
                assert_eq!(actions, if awaited { vec![Action::Joined { by: MAIN, result: 7 }] } else { vec![] });
            });
        }
        for (index, &thread) in world.open.iter().enumerate().filter(|_| world.joining.is_none()) {
            take(Event::Join { thread, by: MAIN }, &|world, actions| {
                world.open.remove(index);
                world.joining = actions.is_empty().then_some(thread);
            });
            take(Event::Detach { thread, by: MAIN }, &|world, actions| {
                world.open.remove(index);
                assert_eq!(actions, [Action::Done { by: MAIN }]);
            });
        }
        if next.is_empty() {
            assert_eq!(world.left, 0, "nobody waits for ever");
            let mut world = world.clone();
            let threads = Threads::with_seats(&mut world.header, &mut world.slots, 1, SEATS);
            assert!((1..4).all(|place| threads.state(ProcessorId(place)) == Some(State::Idle)));
        }
        for world in next {
            if seen.insert(world.clone()) {
                queue.push_back(world);
            }
        }
    }
    assert_eq!(seen.len(), 184);
}
