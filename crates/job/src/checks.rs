//! Mistakes that a job looks for while the program runs: `finespun run --check NAMES`. A check is a field of [`Checks`] and a row
//! of [`CHECKS`].

use serde::{Deserialize, Serialize};

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Private global variables that one process writes and another reads.
    pub globals: bool,
    /// Pointers to private memory in shared memory.
    pub pointers: bool,
    /// Processors that read a word in a loop for so many seconds, which then ends the job. Not asked for: for longer, which is told,
    /// and nothing ends; 0: not looked for.
    pub spins: Option<u32>,
    /// Locks of the C library in private variables that several processes use.
    pub locks: bool,
}

/// A check by name.
#[derive(Debug)]
pub struct Named {
    /// What a user calls it.
    pub name: &'static str,
    /// What it looks for, in one line.
    pub line: &'static str,
    /// Asks for it, with what stood after `name=`; an error is a sentence that says what was expected.
    set: fn(&mut Checks, Option<&str>) -> Result<(), String>,
}

/// All of them.
pub const CHECKS: &[Named] = &[
    Named {
        name: "globals",
        line: "a global variable that is not shared, written by one process and read by another; slow",
        set: |checks, value| plain(value).map(|()| checks.globals = true),
    },
    Named {
        name: "pointers",
        line: "a pointer to private memory (a stack, malloc) stored in shared memory",
        set: |checks, value| plain(value).map(|()| checks.pointers = true),
    },
    Named {
        name: "spins",
        line: "a loop that reads a plain variable until another node changes it, for 2 seconds, or spins=SECONDS; 0: never",
        set: |checks, value| seconds(value).map(|seconds| checks.spins = Some(seconds)),
    },
    Named {
        name: "locks",
        line: "a lock of the C library in a private global variable, used by several processes: each locks its own",
        set: |checks, value| plain(value).map(|()| checks.locks = true),
    },
];

/// The name that stands for all of them.
pub const ALL: &str = "all";

/// For a check that takes no value.
fn plain(value: Option<&str>) -> Result<(), String> {
    value.map_or(Ok(()), |value| Err(format!("expected no value, not \"{value}\"")))
}

/// For a check that takes a number of seconds.
fn seconds(value: Option<&str>) -> Result<u32, String> {
    let Some(text) = value else { return Ok(2) };
    text.parse().map_err(|_| format!("expected a number of seconds, not \"{text}\""))
}

/// What a list of names asks for: `globals,pointers`, or `all`.
///
/// # Errors
/// A name that there is not, or a value that its check does not take, as a sentence for the user.
pub fn parse(list: &str) -> Result<Checks, String> {
    let mut checks = Checks::default();
    for word in list.split(',') {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let mut wanted = CHECKS.iter().filter(|check| name == ALL || check.name == name).peekable();
        if wanted.peek().is_none() {
            let names = CHECKS.iter().map(|check| check.name).collect::<Vec<_>>().join(", ");
            return Err(format!("no check \"{name}\"; there is: {ALL}, {names}"));
        }
        for check in wanted {
            (check.set)(&mut checks, value).map_err(|why| format!("{word}: {why}"))?;
        }
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::{CHECKS, Checks, parse};

    #[test]
    fn a_list_asks_for_each_and_all_for_every_one() {
        assert_eq!(parse("globals"), Ok(Checks { globals: true, ..Checks::default() }));
        for check in CHECKS {
            assert_ne!(parse(check.name), Ok(Checks::default()), "{}", check.name);
        }
        let names = CHECKS.iter().map(|check| check.name).collect::<Vec<_>>().join(",");
        assert_eq!(parse("all"), parse(&names));
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        assert!(parse("global").is_err_and(|why| why.contains("there is: all, globals, pointers")));
        assert!(parse("globals,").is_err());
        assert_eq!(parse("globals=3"), Err("globals=3: expected no value, not \"3\"".into()));
    }
}
