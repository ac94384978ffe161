//! Each seeded bug is found within [`SEEDS`] seeds of a protocol, and breaks the sentence that it should.

use finespun_protocol::cashmere::Cashmere;
use finespun_protocol::cashmere::variants::Variant;
use finespun_protocol::strings::update::StringsRc;

use crate::bugs::Bug;
use crate::job::ENDS;
use crate::objects::REFUSED;
use crate::oracle::{LOAD, RACE};
use crate::protocols::Subject;
use crate::run::{Plan, breaks};
use crate::scene::ROW;

/// The rarest bug shows itself about once in 2,000 programs.
const SEEDS: u64 = 20_000;

fn find<P: Subject>(variant: Variant, bug: Bug, sentences: &[&str]) {
    let plan = Plan { name: "with a seeded bug", variant, one_level: false, bug: Some(bug) };
    let found = (0..SEEDS).find_map(|seed| Some((seed, breaks::<P>(&plan, seed)?)));
    println!("{bug:?}: {found:?}");
    assert!(
        found.is_some_and(|(_, sentence)| sentences.contains(&sentence)),
        "{bug:?} within {SEEDS} seeds: {found:?}"
    );
}

#[test]
fn every_seeded_bug_is_found() {
    const DMS: Variant = Variant::DMS;
    const MS: Variant = Variant::MS;
    const NONE: Variant = Variant::NONE;
    find::<Cashmere>(DMS, Bug::NoticeDropped, &[LOAD]);
    find::<Cashmere>(MS, Bug::AckBeforeApply, &[LOAD]);
    find::<StringsRc>(NONE, Bug::FrameGranted, &[LOAD]);
    find::<Cashmere>(NONE, Bug::ReleaseTooEarly, &[LOAD]);
    find::<Cashmere>(MS, Bug::FetchOvertakes, &[LOAD]);
    find::<Cashmere>(NONE, Bug::Reordered, &[LOAD, ROW]);
    find::<Cashmere>(MS, Bug::NoticesIgnored, &[LOAD]);
    find::<Cashmere>(DMS, Bug::TwinNotRefreshed, &[LOAD]);
    find::<Cashmere>(MS, Bug::UpdateMissesTwin, &[LOAD]);
    find::<Cashmere>(DMS, Bug::MergeInstalls, &[LOAD]);
    find::<Cashmere>(MS, Bug::SkipWithThreads, &[LOAD]);
    find::<Cashmere>(NONE, Bug::HandlerInRelease, &[LOAD]);
    find::<Cashmere>(NONE, Bug::NoWake, &[ENDS]);
    find::<Cashmere>(NONE, Bug::UnlockBeforeQueued, &[ENDS]);
    find::<Cashmere>(DMS, Bug::HandedTooFar, &[LOAD]);
    find::<Cashmere>(DMS, Bug::AcquireNotExcluded, &[LOAD]);
    find::<Cashmere>(DMS, Bug::EqualsUnderLock, &[ENDS]);
    find::<StringsRc>(NONE, Bug::LockNotAwaited, &[RACE, REFUSED]);
}
