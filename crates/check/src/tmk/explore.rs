//! Every interleaving of one small world, and random runs of larger ones.

use std::collections::{BTreeSet, HashSet, VecDeque};

use finespun_protocol::tmk::invariants::{Whole, check, check_times};
use finespun_protocol::tmk::{Seen, Unit, covers};
use finespun_types::Access;

use super::driver::{Form, Rules, Run};
use super::world::{Doing, Letter};
use crate::driver::{Broken, Grain};
use crate::explore::{Report, Violation, digest, way_to};
use crate::litmus::{Litmus, OUTCOMES};
use crate::processor::Move;
use crate::program::{Program, Shape};
use crate::random::{Random, Schedule, program};

pub use crate::explore::{ENDS, LISTS, RIGHTS, TOO_MANY};

/// Causality.
pub const PAST: &str = "an interval is granted only with all that happened before it";

/// Explores a world up to so many states.
#[must_use]
pub fn explore(rules: &Rules, states_max: usize) -> Report {
    let first = Run::new(rules).world;
    let mut seen = HashSet::from([digest(&first)]);
    let mut parents: Vec<(u32, Move)> = vec![(0, Move { task: 0, choice: 0 })];
    let mut waiting = VecDeque::from([(first, 0_u32)]);
    let mut report = Report::new();
    let mut moves = Vec::new();
    while let Some((world, id)) = waiting.pop_front() {
        let run = Run { rules, world, trace: None };
        run.moves(&mut moves);
        if moves.is_empty() {
            match ended(&run) {
                Ok(()) => {
                    if report.outcomes.insert(run.world.registers.clone()) {
                        report.ways.insert(run.world.registers.clone(), way_to(&parents, id, None));
                    }
                }
                Err(broken) => report.violation = Some(replay(rules, &parents, id, None, broken)),
            }
        }
        for &next_move in &moves {
            report.transitions += 1;
            let mut next = Run { rules, world: run.world.clone(), trace: None };
            if let Err(broken) = step(&mut next, next_move) {
                report.violation = Some(replay(rules, &parents, id, Some(next_move), broken));
                break;
            }
            if seen.insert(digest(&next.world)) {
                parents.push((id, next_move));
                waiting.push_back((next.world, parents.len() as u32 - 1));
            }
        }
        if report.violation.is_none() && parents.len() > states_max {
            let broken = Broken::new(TOO_MANY, format!("more than {states_max} states"));
            report.violation = Some(broken.into());
        }
        if report.violation.is_some() {
            break;
        }
    }
    report.states = parents.len();
    report
}

/// One step, and a look at everything.
fn step(run: &mut Run<'_>, next: Move) -> Result<(), Broken> {
    let before: Vec<_> = run.world.nodes.iter().map(|node| node.seen.clone()).collect();
    run.apply(next)?;
    for (node, before) in run.world.nodes.iter().zip(&before) {
        check_times(before, &node.seen, &node.granted, &node.known)
            .map_err(|sentence| Broken::new(sentence, format!("{node:?}")))?;
        for (writer, &index) in node.granted.iter().enumerate().filter(|(_, index)| **index > 0) {
            let past = &run.world.past[writer][index as usize - 1];
            if !covers(&node.granted, past) {
                return Err(Broken::new(PAST, format!("{:?} without {past:?} of n{writer}", node.granted)));
            }
        }
    }
    look(run)
}

fn replay(rules: &Rules, parents: &[(u32, Move)], id: u32, last: Option<Move>, broken: Broken) -> Violation {
    let moves = way_to(parents, id, last);
    Violation::after(broken, trace_of(rules, &moves), moves.len(), None)
}

/// Runs these moves once more, writing down each transition.
pub(crate) fn trace_of(rules: &Rules, moves: &[Move]) -> Vec<String> {
    let mut run = Run::new(rules);
    run.trace = Some(Vec::new());
    for &step in moves {
        if run.apply(step).is_err() {
            break;
        }
    }
    run.trace.unwrap_or_default()
}

/// What must hold after every step.
fn look(run: &Run<'_>) -> Result<(), Broken> {
    let (shape, nodes) = (run.rules.program.shape, run.nodes());
    let seen: Vec<u32> = run.world.nodes.iter().flat_map(|node| node.seen.iter().copied()).collect();
    for unit in 0..shape.units {
        let copies = || (0..nodes).map(|node| &run.world.copies[node * shape.units + unit]);
        let units: Vec<Unit> = copies().map(|copy| copy.unit).collect();
        let writers: Vec<Seen> = copies().flat_map(|copy| copy.writers.iter().copied()).collect();
        let in_flight = in_flight(run, unit as u8);
        // An interval that is just ending is known to its own node first.
        let ending = run.world.processors.iter().any(|processor| matches!(processor.doing, Doing::Closing { .. }));
        let seen: Vec<u32> = seen.iter().map(|time| time + u32::from(ending)).collect();
        let whole = Whole { units: &units, writers: &writers, seen: &seen, in_flight };
        check(&whole).map_err(|sentence| Broken::new(sentence, format!("u{unit}")))?;
        for node in 0..nodes {
            agree(run, node, unit)?;
        }
    }
    Ok(())
}

fn in_flight(run: &Run<'_>, unit: u8) -> bool {
    let about = |letter: &Letter| Run::unit_of(letter) == Some(unit);
    run.world.handlers.iter().flatten().any(|handler| handler.unit == unit)
        || run.world.channels.iter().flatten().any(|envelope| about(&envelope.letter))
}

/// Memory is as the table believes it to be, when no handler is in the middle of changing it.
fn agree(run: &Run<'_>, node: usize, unit: usize) -> Result<(), Broken> {
    if !run.is_free(node, unit as u8) {
        return Ok(());
    }
    let copy = &run.world.copies[node * run.rules.program.shape.units + unit];
    let expected = match (copy.unit.writable, copy.unit.mapped) {
        (true, _) => Access::Write,
        (false, true) => Access::Read,
        (false, false) => Access::None,
    };
    let access = run.access(node, unit);
    if access != expected {
        return Err(Broken::new(RIGHTS, format!("n{node} u{unit}: {access:?}, not {expected:?}")));
    }
    let closing = run.world.processors.iter().enumerate().map(|(number, processor)| match processor.doing {
        Doing::Closing { left, .. } if run.seat(number) == node => left,
        Doing::Closing { .. } | Doing::Running | Doing::Fault { .. } | Doing::Waiting | Doing::Granted => 0,
        Doing::Acquiring { .. } | Doing::Keeping { .. } | Doing::Collecting { .. } => 0,
    });
    let listed = closing.fold(run.world.nodes[node].dirty, |all, left| all | left) & 1 << unit != 0;
    if listed != copy.unit.written {
        return Err(Broken::new(LISTS, format!("n{node} u{unit}: dirty list")));
    }
    Ok(())
}

/// What must hold when nothing can happen any more.
fn ended(run: &Run<'_>) -> Result<(), Broken> {
    if run.is_finished() {
        return Ok(());
    }
    let unfinished = (0..run.world.processors.len()).filter(|&number| run.op(number).is_some());
    let waiting: Vec<_> =
        unfinished.map(|number| format!("p{number} {:?}", run.world.processors[number].doing)).collect();
    Err(Broken::new(ENDS, waiting.join(", ")))
}

/// Runs a litmus test in every way. Programs without data races reach what is listed, all of it; programs with races no
/// more than that: a copy may stay older here than where notices arrive before an acquire asks for them. Beside what Cashmere may do (`lazy`)
/// some races have outcomes of their own (`tmk`), for no home decides the order of two diffs that nothing orders.
///
/// # Errors
/// The first violation, or an outcome that is not listed or missing.
pub fn litmus(litmus: &Litmus) -> Result<usize, Violation> {
    let wrong = |why: String| Violation::from(Broken::new(OUTCOMES, format!("{}: {why}", litmus.name)));
    let program = Program::parse(litmus.text).map_err(wrong)?;
    let (mut reached, mut states) = (BTreeSet::new(), 0);
    for (form, grain) in super::worlds::WAYS {
        let report = explore(&Rules { program: program.clone(), form, grain, collects: false, bug: None }, 1_000_000);
        if let Some(violation) = report.violation {
            return Err(violation);
        }
        states += report.states;
        reached.extend(report.outcomes);
    }
    let mut allowed = program.allowed_under("lazy");
    allowed.extend(program.allowed_under("tmk"));
    let all = program.racy || reached == allowed;
    if all && reached.is_subset(&allowed) {
        return Ok(states);
    }
    let text = |outcomes: &BTreeSet<Vec<u8>>| {
        outcomes.iter().map(|outcome| program.outcome_text(outcome)).collect::<Vec<_>>().join(", ")
    };
    Err(wrong(format!("reached: {}; allowed: {}", text(&reached), text(&allowed))))
}

/// One random run of a random program; tells how many steps it had. Every other one collects at its barriers.
///
/// # Errors
/// The violation, with the run that led to it.
pub fn run(shape: Shape, form: Form, grain: Grain, seed: u64) -> Result<usize, Box<Violation>> {
    let mut random = Random::new(seed);
    let program = program(shape, &mut random);
    let rules = Rules { program, form, grain, collects: random.below(2) == 0, bug: None };
    let schedule = random.clone();
    interleave(&rules, schedule.clone(), false).map_err(|(_, _, steps)| {
        let (broken, trace) = match interleave(&rules, schedule, true) {
            Err((broken, trace, _)) => (broken, trace),
            Ok(_) => (Broken::new(ENDS, "a run that cannot be repeated"), Vec::new()),
        };
        Box::new(Violation::after(broken, trace, steps, Some(seed)))
    })
}

/// Goes on until nothing can happen.
fn interleave(rules: &Rules, random: Random, traced: bool) -> Result<usize, (Broken, Vec<String>, usize)> {
    let mut run = Run::new(rules);
    run.trace = traced.then(Vec::new);
    let (mut schedule, mut moves) = (Schedule::new(random), Vec::new());
    loop {
        run.moves(&mut moves);
        let result = if moves.is_empty() {
            ended(&run)
        } else {
            let next = schedule.next(&moves);
            step(&mut run, next).and_then(|()| schedule.is_in_time())
        };
        match result {
            Ok(()) if moves.is_empty() => return Ok(schedule.steps()),
            Ok(()) => {}
            Err(broken) => return Err((broken, run.trace.unwrap_or_default(), schedule.steps())),
        }
    }
}
