//! What the checks of `--check` have found, once the job has ended.

use finespun_errors::Report;
use finespun_job::Job;

/// Findings of one kind that are shown; of the others the number is told.
const SHOWN_MAX: usize = 20;

/// What a check has to say.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// A mistake of the program.
    pub reports: Vec<Report>,
    /// A sentence beside, for who wants to know.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// A mistake.
    #[must_use]
    pub fn report(report: Report) -> Self {
        Self { reports: vec![report], notes: Vec::new() }
    }

    /// Nothing but a sentence.
    #[must_use]
    pub fn note(note: String) -> Self {
        Self { reports: Vec::new(), notes: vec![note] }
    }

    /// Adds what another check says.
    pub fn add(&mut self, other: Self) {
        self.reports.extend(other.reports);
        self.notes.extend(other.notes);
    }
}

/// A sentence, and the findings below it, a line each.
#[must_use]
pub fn listed(sentence: &str, findings: &[String]) -> String {
    let shown = findings.iter().take(SHOWN_MAX).map(|line| format!("\n  {line}")).collect::<String>();
    let rest = findings.len().saturating_sub(SHOWN_MAX);
    let more = if rest > 0 { format!("\n  and {rest} more") } else { String::new() };
    format!("{sentence}{shown}{more}")
}

/// `processor 3 (node 1)`.
#[must_use]
pub fn who(processor: u32, job: &Job) -> String {
    format!("processor {processor} (node {})", processor / (job.views * job.threads))
}
