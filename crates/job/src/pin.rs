//! Which core each processor of a job stays on: `finespun run --pin`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// The kernel places every thread.
    #[default]
    None,
    /// Processor k stays on the k-th of the cores that the job may use.
    Cores,
    /// Processor k stays on the k-th core of this list.
    List(Vec<u32>),
}

/// One more than the greatest number of a core, as the kernel's plain affinity calls count them.
const CORES_MAX: u32 = 1024;

impl FromStr for Pin {
    type Err = String;

    /// `none`, `cores`, or a list like `0,2,4-7`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "cores" => Ok(Self::Cores),
            list => {
                let ranges = list.split(',').map(range).collect::<Option<Vec<_>>>();
                let ranges =
                    ranges.ok_or_else(|| format!("expected none, cores, or a list like 0,2,4-7, not \"{text}\""))?;
                Ok(Self::List(ranges.into_iter().flatten().collect()))
            }
        }
    }
}

/// `3`, or `4-7`.
fn range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u32>().ok().filter(|core| *core < CORES_MAX && !text.starts_with('+'));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(first..=last)
}

/// Where the processors of a job are pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// The core of each processor, by processor.
    pub cores: Vec<u32>,
    /// How many cores the job may use. A pinned process can no longer count them itself.
    pub usable: u32,
}

impl Pin {
    /// The core of each of so many processors; `usable` are the cores that the launcher may use.
    ///
    /// # Errors
    /// There are too few cores, or one of the list may not be used: a sentence for the user.
    pub fn over(&self, processors: u32, usable: &[u32]) -> Result<Option<Pinned>, String> {
        let (asked, named) = match self {
            Self::None => return Ok(None),
            Self::Cores => (usable, format!("--pin cores, and finespun may use {}", count(usable))),
            Self::List(cores) => (cores.as_slice(), format!("--pin names {}", count(cores))),
        };
        let processors_told =
            if processors == 1 { "1 processor".to_owned() } else { format!("{processors} processors") };
        if asked.len() < processors as usize {
            return Err(format!("{named}, too few for {processors_told}: expected a core for each"));
        }
        let cores = &asked[..processors as usize];
        if let Some(core) = cores.iter().find(|core| !usable.contains(core)) {
            let usable = count(usable);
            return Err(format!("--pin names core {core}, and finespun may use {usable} (taskset, cpuset)"));
        }
        Ok(Some(Pinned { cores: cores.to_vec(), usable: u32::try_from(usable.len()).unwrap_or(u32::MAX) }))
    }
}

impl Pinned {
    /// Does each processor have a core of its own?
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.cores.iter().enumerate().all(|(number, core)| !self.cores[..number].contains(core))
    }
}

/// `2 cores (0-1)`.
fn count(cores: &[u32]) -> String {
    let noun = if cores.len() == 1 { "core" } else { "cores" };
    format!("{} {noun} ({})", cores.len(), list(cores))
}

/// Numbers as `--pin` takes them: `0,2,4-7`.
#[must_use]
pub fn list(cores: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            Some(_) | None => runs.push((core, core)),
        }
    }
    let run = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{Pin, list};

    fn pin(text: &str) -> Pin {
        text.parse().expect(text)
    }

    #[test]
    fn a_wish_is_a_word_or_a_list_of_cores() {
        assert_eq!([pin("none"), pin("cores")], [Pin::None, Pin::Cores]);
        assert_eq!(pin("3,0,5-7"), Pin::List(vec![3, 0, 5, 6, 7]));
        for wrong in ["", "core", "1,", "-1", "+1", "3-1", "0-1024", "99999999999", "0 1"] {
            assert!(wrong.parse::<Pin>().is_err_and(|why| why.contains("like 0,2,4-7")), "{wrong}");
        }
    }

    #[test]
    fn processors_take_cores_in_order() {
        let cores = |text: &str, processors| {
            let pinned = pin(text).over(processors, &[2, 3, 8]).expect("enough cores");
            pinned.map(|pinned| (pinned.cores.clone(), pinned.usable, pinned.is_apart()))
        };
        assert_eq!(cores("none", 9), None);
        assert_eq!(cores("cores", 2), Some((vec![2, 3], 3, true)));
        assert_eq!(cores("8,2", 2), Some((vec![8, 2], 3, true)));
        assert_eq!(cores("3,3", 2), Some((vec![3, 3], 3, false)));
    }

    #[test]
    fn too_few_cores_and_cores_outside_of_the_mask_are_refused() {
        let refused = |text: &str, processors| pin(text).over(processors, &[2, 3]).expect_err("refused");
        assert_eq!(
            refused("cores", 4),
            "--pin cores, and finespun may use 2 cores (2-3), too few for 4 processors: expected a core for each"
        );
        assert_eq!(refused("3", 2), "--pin names 1 core (3), too few for 2 processors: expected a core for each");
        assert_eq!(refused("2,4", 2), "--pin names core 4, and finespun may use 2 cores (2-3) (taskset, cpuset)");
    }

    #[test]
    fn lists_are_shown_as_they_are_given() {
        assert_eq!([list(&[]), list(&[0, 1, 2, 5, 7, 8])], ["", "0-2,5,7-8"]);
    }
}
