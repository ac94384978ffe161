//! Each seeded bug is found within so many seeds of a protocol, and breaks the sentence that it should.

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

fn find<P: Subject>(variant: Variant, bug: Bug, seeds: u64, sentences: &[&str]) {
    let plan = Plan { name: "with a seeded bug", variant, one_level: false, bug: Some(bug) };
    let found = (0..seeds).find_map(|seed| Some((seed, breaks::<P>(&plan, seed)?)));
    println!("{bug:?}: {found:?}");
    assert!(
        found.is_some_and(|(_, sentence)| sentences.contains(&sentence)),
        "{bug:?} within {seeds} seeds: {found:?}"
    );
}

#[test]
fn every_seeded_bug_is_found() {
    const DMS: Variant = Variant::DMS;
    const MS: Variant = Variant::MS;
    const NONE: Variant = Variant::NONE;
    find::<Cashmere>(DMS, Bug::NoticeDropped, 20, &[LOAD]);
    find::<Cashmere>(MS, Bug::AckBeforeApply, 20, &[LOAD]);
    find::<StringsRc>(NONE, Bug::FrameGranted, 4000, &[LOAD]);
    find::<Cashmere>(NONE, Bug::ReleaseTooEarly, 50, &[LOAD]);
    find::<Cashmere>(MS, Bug::FetchOvertakes, 200, &[LOAD]);
    find::<Cashmere>(NONE, Bug::Reordered, 50, &[LOAD, ROW]);
    find::<Cashmere>(MS, Bug::NoticesIgnored, 20, &[LOAD]);
    find::<Cashmere>(DMS, Bug::TwinNotRefreshed, 50, &[LOAD]);
    find::<Cashmere>(MS, Bug::UpdateMissesTwin, 50, &[LOAD]);
    find::<Cashmere>(DMS, Bug::MergeInstalls, 50, &[LOAD]);
    find::<Cashmere>(MS, Bug::SkipWithThreads, 1500, &[LOAD]);
    find::<Cashmere>(NONE, Bug::HandlerInRelease, 200, &[LOAD]);
    find::<Cashmere>(NONE, Bug::NoWake, 20, &[ENDS]);
    find::<Cashmere>(NONE, Bug::UnlockBeforeQueued, 800, &[ENDS]);
    find::<Cashmere>(DMS, Bug::HandedTooFar, 900, &[LOAD]);
    find::<Cashmere>(DMS, Bug::AcquireNotExcluded, 1500, &[LOAD]);
    find::<Cashmere>(DMS, Bug::EqualsUnderLock, 50, &[ENDS]);
    find::<StringsRc>(NONE, Bug::LockNotAwaited, 50, &[RACE, REFUSED]);
}
