//! What is kept of a run: one number that two equal runs have in common, and the last transitions.

use std::collections::VecDeque;

use crate::clock::Moment;

/// So many lines are kept.
const LINES: usize = 120;

#[derive(Default)]
pub struct Notes {
    hash: u64,
    /// The last transitions, if they are wanted.
    lines: Option<VecDeque<String>>,
}

impl Notes {
    pub fn new(traced: bool) -> Self {
        Self { hash: 0, lines: traced.then(VecDeque::new) }
    }

    /// Everything that happens goes into the number.
    pub fn mix(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f_u128;
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    pub const fn hash(&self) -> u64 {
        self.hash
    }

    pub const fn are_wanted(&self) -> bool {
        self.lines.is_some()
    }

    /// One transition.
    pub fn line(&mut self, now: Moment, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(format!("{}.{:03}us {}", now / 1_000, now % 1_000, line()));
        }
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.map(Vec::from).unwrap_or_default()
    }
}
