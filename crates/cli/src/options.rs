//! The command line, and the environment variables that say the same.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use finespun_job::messages::Messages;
use finespun_job::pin::Pin;
use finespun_job::{Faults, Transport};
use finespun_types::{NODES_MAX, VIEWS_MAX};

use crate::switches::Chosen;

/// The most threads of a process.
pub const THREADS_MAX: u32 = 64;
/// The most processors of a job.
pub const PROCESSORS_MAX: u32 = 1024;
/// A heap is whole pieces of this.
pub const HEAP_STEP: u64 = 2 << 20;
/// The largest heap: the most pages that the heap's layout can number.
const HEAP_MAX: u64 = 1 << 40;

/// One memory, many machines: runs programs that share memory across nodes.
#[derive(Debug, Parser)]
#[command(name = "finespun", version, arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a program on several nodes of this machine
    Run(Run),
    /// Explain an error by its number, or list all
    Explain {
        /// The number, as in E020
        code: Option<String>,
    },
    /// Show what this machine offers, what is used, and why
    Doctor,
    /// Check a protocol: every interleaving of small worlds, random larger ones, and seeded bugs
    Check {
        /// csm-2l: in all its forms; csm-dms, csm-ms, csm-s, csm-none: in the form of this variant; the others: their own tables
        #[arg(value_parser = PossibleValuesParser::new(finespun_check::protocols::all_names()))]
        protocol: String,
        #[command(flatten)]
        litmus: Litmus,
    },
    /// Measure what each operation costs, beside the machine's floors, other systems, and native threads
    Bench(Bench),
    /// Show the summary of a run again, from the file that --stats wrote, or two runs side by side
    Report {
        /// The file
        file: PathBuf,
        /// With --diff: a second file
        #[arg(requires = "diff")]
        other: Option<PathBuf>,
        /// Compare two files: every count and time, with how many times the first's the second's is
        #[arg(long, requires = "other")]
        diff: bool,
    },
    /// Write manual pages and completions
    #[command(hide = true)]
    Pages {
        /// The folder, laid out as /usr/share is
        folder: PathBuf,
        /// The compiler driver
        fspcc: PathBuf,
    },
}

#[derive(Args, Debug)]
pub struct Litmus {
    /// Instead: every interleaving of the program in this file, and the outcomes that they have; files like it are in tests/litmus
    #[arg(long, value_name = "FILE")]
    pub litmus: Option<PathBuf>,
    /// With --litmus: draw a shortest run to each outcome, as messages between nodes
    #[arg(long, requires = "litmus")]
    pub trace: bool,
    /// With --litmus: this outcome alone, like "flag=1 data=0"
    #[arg(long, value_name = "VALUES", requires = "litmus")]
    pub outcome: Option<String>,
    /// With --outcome: the drawing as an SVG, into a file
    #[arg(long, value_name = "FILE", requires = "outcome")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Bench {
    /// Protocols, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "csm-2l")]
    pub protocols: Vec<String>,
    /// Transports
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "shm,tcp", value_parser = transport())]
    pub transports: Vec<Transport>,
    /// Fault mechanisms
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "uffd,mprotect", value_parser = faults())]
    pub faults: Vec<Faults>,
    /// Leave the applications out
    #[arg(long)]
    pub no_applications: bool,
    /// Leave floors, peers and operations out
    #[arg(long, conflicts_with_all = ["no_applications", "scale", "svg"])]
    pub no_operations: bool,
    /// Measure how costs grow with nodes, processors, heap, dirty pages and sharers, and the memory taken; nothing else
    #[arg(long)]
    pub scale: bool,
    /// Runs of each application, by turns; a third of them for the sequential program and over tcp, which the budget does not judge
    #[arg(long, default_value = "5")]
    pub repeat: usize,
    /// How often floors, peers and operations are measured, by turns; of more than two, the luckiest minimum is left out
    #[arg(long, default_value = "1")]
    pub rounds: usize,
    /// As little as possible: only whether everything runs
    #[arg(long)]
    pub tiny: bool,
    /// Write every measurement to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the operations into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Run {
    /// Nodes
    #[arg(short, long, value_name = "N", env = "FINESPUN_NODES", default_value = "1", allow_negative_numbers = true, value_parser = count_to(NODES_MAX as u32))]
    pub nodes: u32,
    /// Processes per node
    #[arg(short, long, value_name = "P", env = "FINESPUN_PROCESSES", default_value = "1", allow_negative_numbers = true, value_parser = count_to(VIEWS_MAX as u32))]
    pub processes: u32,
    /// Threads per process
    #[arg(short, long, value_name = "T", env = "FINESPUN_THREADS", default_value = "1", allow_negative_numbers = true, value_parser = count_to(THREADS_MAX))]
    pub threads: u32,
    /// How nodes reach each other: each other's memory mapped, or messages only
    #[arg(long, env = "FINESPUN_TRANSPORT", default_value = "shm", value_parser = transport())]
    pub transport: Transport,
    /// The coherence protocol; `help` lists them, `list` does for programs
    #[arg(long, value_name = "NAME", env = "FINESPUN_PROTOCOL", default_value = "csm-2l")]
    pub protocol: String,
    /// How accesses are detected; `auto` takes userfaultfd if this machine offers it
    #[arg(long, env = "FINESPUN_FAULTS", default_value = "auto", value_parser = faults())]
    pub faults: Faults,
    /// The limit of the shared heap, like 512M or 8G [default: available memory, at most 64G]
    #[arg(long, value_name = "SIZE", env = "FINESPUN_HEAP", value_parser = parse_heap)]
    pub heap: Option<u64>,
    /// Keep each processor on a core: `none`, `cores` (processor k on the k-th that may be used), or a list like 0,2,4-7
    #[arg(long, value_name = "CORES", env = "FINESPUN_PIN", default_value = "none")]
    pub pin: Pin,
    /// For tests: `sockets` or `loopback` carries the messages; `,delay=SEED` behind it delays them and changes their order
    #[arg(long, value_name = "HOW", env = "FINESPUN_MESSAGES", default_value = "sockets", hide = true)]
    pub messages: Messages,
    /// What of the runtime can be chosen beside the protocol.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Look for mistakes of the program while it runs: names with commas between, or `all`; `help` lists them
    #[arg(long, value_name = "NAMES", env = "FINESPUN_CHECK")]
    pub check: Option<String>,
    /// Write every counter and the breakdown to this file, as JSON
    #[arg(long, value_name = "FILE", env = "FINESPUN_STATS")]
    pub stats: Option<PathBuf>,
    /// No summary after the run
    #[arg(short, long, env = "FINESPUN_QUIET", value_parser = BoolishValueParser::new())]
    pub quiet: bool,
    /// Put the process before each line of output, like [n1.v0]
    #[arg(long, env = "FINESPUN_PREFIX", value_parser = BoolishValueParser::new())]
    pub prefix: bool,
    /// The program, a path or a name to look for along PATH, and its own arguments, never looked at
    // One list of both: in two, clap would take a "--" that follows the program for its own.
    #[arg(trailing_var_arg = true, value_names = ["PROGRAM", "ARGS"], num_args = 0..)]
    pub command: Vec<OsString>,
}

/// A count from 1 to `most`.
fn count_to(most: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| match text.parse::<u32>() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        Ok(_) | Err(_) => Err(format!("expected a number from 1 to {most}")),
    }
}

fn transport() -> impl TypedValueParser<Value = Transport> {
    PossibleValuesParser::new(["shm", "tcp"]).map(|name| if name == "tcp" { Transport::Tcp } else { Transport::Shm })
}

fn faults() -> impl TypedValueParser<Value = Faults> {
    PossibleValuesParser::new(["auto", "uffd", "mprotect"]).map(|name| match name.as_str() {
        "uffd" => Faults::Uffd,
        "mprotect" => Faults::Mprotect,
        _ => Faults::Auto,
    })
}

fn parse_heap(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    if !(HEAP_STEP..=HEAP_MAX).contains(&bytes) {
        return Err("expected a size from 2M to 1T".into());
    }
    Ok(bytes / HEAP_STEP * HEAP_STEP)
}

/// `4096`, `512k`, `1.5G`, also with `iB` or `B` after the suffix: powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size like 512M or 8G, not \"{text}\"");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text[digits.len()..].to_ascii_lowercase();
    let letter = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
    let shift = match letter {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(expected()),
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = digits.parse().ok().filter(|_| is_plain).ok_or_else(expected)?;
    let bytes = number * f64::from(1u32 << (shift % 30)) * if shift >= 30 { f64::from(1u32 << 30) } else { 1.0 };
    if bytes < 2f64.powi(63) { Ok(bytes as u64) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Action, Options, Run, parse_heap, parse_size};

    fn run(args: &[&str]) -> Result<Run, String> {
        let args = ["finespun", "run"].iter().chain(args);
        let Action::Run(run) = Options::try_parse_from(args).map_err(|error| error.to_string())?.action else {
            unreachable!("the subcommand is run");
        };
        Ok(run)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn sizes_take_suffixes() {
        let sizes = ["4096", "512k", "1.5G", "2T", "3MiB", "7mb"].map(|text| parse_size(text).expect(text));
        assert_eq!(sizes, [4096, 512 << 10, 3 << 29, 2 << 40, 3 << 20, 7 << 20]);
        for wrong in ["", "G", "4X", "-1G", "1e9", "inf", "4 G", "99999999999T", "1.2.3M"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_heap("3M"), Ok(2 << 20));
        assert!(parse_heap("0").is_err() && parse_heap("1M").is_err() && parse_heap("2T").is_err());
    }

    #[test]
    fn the_programs_own_flags_are_not_looked_at() {
        let options = run(&["-n", "2", "./sor", "--size", "8", "-n", "--", "-q", "--help"]).expect("valid");
        assert_eq!((options.nodes, options.quiet), (2, false));
        assert_eq!(options.command, ["./sor", "--size", "8", "-n", "--", "-q", "--help"]);
        assert_eq!(run(&["--", "./sor", "-x"]).expect("valid").command, ["./sor", "-x"]);
        for before in [&["./ilink", "--", "-n", "2"][..], &["--", "./ilink", "--", "-n", "2"]] {
            assert_eq!(
                run(before).expect("valid").command,
                ["./ilink", "--", "-n", "2"],
                "the second \"--\" is the program's"
            );
        }
        assert!(run(&["--size", "./sor"]).is_err(), "before the program only our flags may stand");
    }

    #[test]
    fn absurd_counts_say_what_was_expected() {
        for (args, expected) in [
            (["-n", "0"], "from 1 to 64"),
            (["-n", "65"], "from 1 to 64"),
            (["-n", "-1"], "from 1 to 64"),
            (["-n", "99999999999"], "from 1 to 64"),
            (["-p", "33"], "from 1 to 32"),
            (["-t", "65"], "from 1 to 64"),
            (["-t", "two"], "from 1 to 64"),
            (["--transport", "udp"], "shm, tcp"),
            (["--faults", "x"], "auto, uffd, mprotect"),
            (["--pin", "core"], "none, cores, or a list like 0,2,4-7"),
        ] {
            let error = run(&[args[0], args[1], "./sor"]).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }
}
