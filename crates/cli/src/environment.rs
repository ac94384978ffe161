//! Variables named `FINESPUN_*` that nobody reads are most likely misspelt: say so.

use std::env;

use clap::CommandFactory;

use crate::options::Options;

/// Set by the launcher for the processes of a job (crates/job); a user may see them in a nested run.
const OF_A_JOB: &[&str] = &[
    finespun_job::ENV_JOB,
    finespun_job::ENV_NODE,
    finespun_job::ENV_VIEW,
    finespun_job::ENV_SOCKETS,
    finespun_job::ENV_CONTROL,
    finespun_job::ENV_KEEP,
];

/// Read by the runtime in the program's processes, without a flag of ours: where the shared space lies.
const OF_THE_RUNTIME: &[&str] = &["FINESPUN_BASE", "FINESPUN_TMK_COLLECT"];

/// One line on stderr for each unknown name.
pub fn warn_of_unknown_names() {
    let known = known_names();
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| name.starts_with("FINESPUN_")) {
        if !known.contains(&name) {
            eprintln!("finespun: warning: the environment variable {name} is not known{}", hint(&name, &known));
        }
    }
}

fn known_names() -> Vec<String> {
    let command = Options::command();
    let of_flags = command.get_subcommands().flat_map(clap::Command::get_arguments).filter_map(clap::Arg::get_env);
    let of_flags = of_flags.filter_map(|name| name.to_str().map(str::to_owned));
    of_flags.chain(OF_A_JOB.iter().chain(OF_THE_RUNTIME).map(|name| (*name).to_owned())).collect()
}

fn hint(name: &str, known: &[String]) -> String {
    let offered = known.iter().filter(|name| !OF_A_JOB.contains(&name.as_str()));
    let nearest = offered.map(|known| (distance(name, known), known)).min();
    nearest.map_or_else(String::new, |(_, nearest)| format!("; the nearest that is: {nearest}"))
}

/// How many letters must be added, left out or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row = (0..=other.len()).collect::<Vec<_>>();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, hint, known_names};

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn every_variable_is_documented() {
        let document = include_str!("../../../docs/running.md");
        for name in known_names() {
            assert!(document.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn every_flag_has_its_twin_and_the_nearest_is_offered() {
        let known = known_names();
        for name in [
            "NODES",
            "PROCESSES",
            "THREADS",
            "HEAP",
            "FAULTS",
            "TRANSPORT",
            "PROTOCOL",
            "QUIET",
            "STATS",
            "PREFIX",
            "JOB",
        ] {
            assert!(known.contains(&format!("FINESPUN_{name}")), "{name}");
        }
        assert!(hint("FINESPUN_NODE_COUNT", &known).ends_with("FINESPUN_NODES"));
        assert!(hint("FINESPUN_FAULT", &known).ends_with("FINESPUN_FAULTS"));
    }
}
