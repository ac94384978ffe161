//! One sentence of advice when something stands out: the first rule of the table that applies.

use finespun_types::{Bucket, Counter};

use crate::RunStats;

/// A rule: when it applies, it says so in one sentence.
pub struct Rule {
    /// What it looks for.
    pub name: &'static str,
    advise: fn(&Facts<'_>) -> Option<String>,
}

/// The rules, by precedence. Counts come first: they do not depend on how busy the machine was. With more processors
/// than cores, times say more about the scheduler than about the program, so that rule stands before those on waiting.
pub const RULES: &[Rule] = &[
    Rule { name: "concurrent writers of one page", advise: false_sharing },
    Rule { name: "many small releases", advise: many_diffs },
    Rule { name: "more processors than cores", advise: too_few_cores },
    Rule { name: "uneven work", advise: uneven },
    Rule { name: "pages fetched again and again", advise: fetched_again },
    Rule { name: "waiting for locks", advise: lock_wait },
    Rule { name: "barriers too frequent", advise: frequent_barriers },
];

/// The advice for a run, if something stands out.
#[must_use]
pub fn advice(stats: &RunStats) -> Option<String> {
    let facts = Facts::of(stats);
    RULES.iter().find_map(|rule| (rule.advise)(&facts))
}

struct Facts<'stats> {
    stats: &'stats RunStats,
    total_ns: u64,
}

/// Runs shorter than this say nothing about time.
const SECONDS_LEAST: f64 = 0.05;
/// Fewer events than this are not worth a word.
const EVENTS_LEAST: u64 = 200;

impl<'stats> Facts<'stats> {
    fn of(stats: &'stats RunStats) -> Self {
        Self { stats, total_ns: stats.times().total() }
    }

    fn count(&self, counter: Counter) -> u64 {
        self.stats.totals.get(counter)
    }

    /// Percent of all processors' time; 0 when the run was too short to tell.
    fn percent(&self, bucket: Bucket) -> u64 {
        if self.total_ns == 0 || self.stats.run.seconds < SECONDS_LEAST {
            return 0;
        }
        let part = u128::from(self.stats.times().get(bucket)) * 100 / u128::from(self.total_ns);
        u64::try_from(part).expect("a part is at most 100 percent of its whole")
    }

    /// The processor that computes longest, and how many times the mean that is.
    fn longest(&self) -> Option<(u32, f64)> {
        let compute = |times: &crate::ProcessorTimes| times.times.get(Bucket::Compute);
        let longest = self.stats.breakdown.iter().max_by_key(|times| compute(times))?;
        let sum = self.stats.breakdown.iter().map(compute).sum::<u64>();
        let mean = sum as f64 / self.stats.breakdown.len() as f64;
        (mean > 0.0).then(|| (longest.processor, compute(longest) as f64 / mean))
    }
}

/// An incoming page is diffed against a twin only when this node has written the page meanwhile.
fn false_sharing(facts: &Facts<'_>) -> Option<String> {
    let (diffs, incoming) = (facts.count(Counter::Diffs), facts.count(Counter::IncomingDiffs));
    (incoming >= EVENTS_LEAST && incoming * 5 > diffs).then(|| {
        format!(
            "nodes often write the same page at the same time ({incoming} two-way diffs): give each processor's data \
             pages of its own, by fsp_malloc_distributed or by padding to 4096 bytes"
        )
    })
}

fn many_diffs(facts: &Facts<'_>) -> Option<String> {
    let (diffs, twins) = (facts.count(Counter::Diffs), facts.count(Counter::Twins));
    let transfers = facts.count(Counter::PageTransfers);
    (diffs >= EVENTS_LEAST && diffs + twins > 4 * transfers.max(1)).then(|| {
        format!(
            "pages are written back far more often than read elsewhere ({diffs} diffs, {transfers} page transfers): \
             release less often, or place data at the node that writes it (first touch, fsp_malloc_on)"
        )
    })
}

fn too_few_cores(facts: &Facts<'_>) -> Option<String> {
    let (processors, cores) = (facts.stats.run.processors, facts.stats.run.cores);
    let waiting =
        facts.percent(Bucket::LockWait) + facts.percent(Bucket::BarrierWait) + facts.percent(Bucket::ReadFault);
    (processors > cores && waiting > 25).then(|| {
        format!(
            "{processors} processors share {cores} cores here, so much of the waiting is for a core: compare times only \
             with at most {cores} processors; the counts hold"
        )
    })
}

fn uneven(facts: &Facts<'_>) -> Option<String> {
    let waiting = facts.percent(Bucket::BarrierWait);
    let (processor, times) = facts.longest()?;
    (waiting > 40 && times > 1.5).then(|| {
        format!(
            "processor {processor} computes {times:.1} times the mean while {waiting} % of all time is spent waiting at \
             barriers: divide the work more evenly"
        )
    })
}

fn fetched_again(facts: &Facts<'_>) -> Option<String> {
    let reading = facts.percent(Bucket::ReadFault);
    let (transfers, dropped) = (facts.count(Counter::PageTransfers), facts.count(Counter::Invalidations));
    (reading > 30 && transfers >= EVENTS_LEAST && dropped * 2 > transfers).then(|| {
        format!(
            "read faults take {reading} %, mostly for pages fetched again after a synchronization: let each processor \
             work on the same part each time, and keep what changes apart from what is only read"
        )
    })
}

fn lock_wait(facts: &Facts<'_>) -> Option<String> {
    let waiting = facts.percent(Bucket::LockWait);
    let acquires = facts.count(Counter::LockAcquires);
    (waiting > 30).then(|| {
        format!(
            "waiting for locks and flags takes {waiting} % ({acquires} locks acquired): hold locks for less, or split \
             what they guard among several"
        )
    })
}

fn frequent_barriers(facts: &Facts<'_>) -> Option<String> {
    let waiting = facts.percent(Bucket::BarrierWait);
    let barriers = facts.count(Counter::Barriers) / u64::from(facts.stats.run.processors.max(1));
    (waiting > 40).then(|| {
        format!("{barriers} barriers take {waiting} % of the time: give each processor more work between them, or a larger problem")
    })
}

#[cfg(test)]
mod tests {
    use finespun_types::{Bucket, Counter};

    use super::{RULES, advice};
    use crate::RunStats;
    use crate::stats::tests::run_of;

    fn even(bucket: Bucket, ms: u64) -> impl Fn(u32) -> [u64; Bucket::COUNT] {
        move |_| {
            let mut times = [0; Bucket::COUNT];
            times[Bucket::Compute as usize] = 100 - ms;
            times[bucket as usize] += ms;
            times
        }
    }

    fn says(stats: &RunStats, part: &str) {
        let text = advice(stats).expect("something stands out");
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("  ") && !text.ends_with('.'), "{text}");
    }

    #[test]
    fn a_good_run_gets_no_advice() {
        assert_eq!(advice(&run_of(4, even(Bucket::BarrierWait, 10), &[(Counter::PageTransfers, 1000)])), None);
        assert_eq!(advice(&run_of(0, |_| [0; 7], &[])), None);
    }

    #[test]
    fn waiting_for_one_processor_is_uneven_work() {
        let stats = run_of(4, |node| if node == 2 { [100, 0, 0, 0, 0, 0, 0] } else { [20, 0, 0, 0, 0, 80, 0] }, &[]);
        says(&stats, "processor 2 computes 2.5 times the mean while 60 %");
    }

    #[test]
    fn waiting_for_everybody_is_frequent_barriers() {
        let stats = run_of(4, even(Bucket::BarrierWait, 50), &[(Counter::Barriers, 300)]);
        says(&stats, "300 barriers take 50 %");
    }

    #[test]
    fn two_way_diffs_show_concurrent_writers() {
        let counts = [(Counter::IncomingDiffs, 300), (Counter::Diffs, 1000), (Counter::PageTransfers, 1000)];
        says(&run_of(1, even(Bucket::BarrierWait, 90), &counts), "300 two-way diffs");
    }

    #[test]
    fn diffs_without_readers_are_small_releases() {
        let counts = [(Counter::Twins, 900), (Counter::Diffs, 900), (Counter::PageTransfers, 10)];
        says(&run_of(2, even(Bucket::Flush, 20), &counts), "1800 diffs, 20 page transfers");
    }

    #[test]
    fn read_faults_that_follow_invalidations_are_fetches_again() {
        let counts = [(Counter::Invalidations, 900), (Counter::PageTransfers, 1000)];
        says(&run_of(2, even(Bucket::ReadFault, 45), &counts), "read faults take 45 %");
    }

    #[test]
    fn locks_are_named_when_they_take_long() {
        says(&run_of(2, even(Bucket::LockWait, 35), &[(Counter::LockAcquires, 5)]), "takes 35 % (10 locks acquired)");
    }

    #[test]
    fn too_few_cores_explain_the_waiting() {
        let mut stats = run_of(4, even(Bucket::BarrierWait, 60), &[]);
        stats.run.cores = 2;
        says(&stats, "4 processors share 2 cores");
    }

    #[test]
    fn a_run_of_an_instant_says_nothing_about_time() {
        let mut stats = run_of(4, even(Bucket::BarrierWait, 90), &[]);
        stats.run.seconds = 0.01;
        assert_eq!(advice(&stats), None);
    }

    #[test]
    fn every_rule_is_described_in_the_documentation_in_this_order() {
        let document = include_str!("../../../docs/statistics.md");
        let places = RULES.iter().map(|rule| document.find(&format!("| {} |", rule.name)).expect(rule.name));
        assert!(places.is_sorted());
    }

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names = RULES.iter().map(|rule| rule.name).collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }
}
