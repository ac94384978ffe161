//! The command `finespun`.

#![forbid(unsafe_code)]

mod bench;
mod check;
mod doctor;
mod environment;
mod explain;
mod litmus;
mod options;
mod output;
mod pages;
mod report;
mod run;
mod switches;

use std::env;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use finespun_errors::{Code, Place, Report};
use options::{Action, Litmus, Options};

fn main() -> ExitCode {
    // A node's service process comes here too, and often: it needs no more than this.
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == finespun_launch::node::SUBCOMMAND) {
        return exit(finespun_launch::node::main(args.skip(1).collect()));
    }
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return refuse_usage(&error),
    };
    environment::warn_of_unknown_names();
    let result = match options.action {
        Action::Run(options) => run::run(options),
        Action::Explain { code } => explain::explain(code.as_deref()),
        Action::Doctor => Ok(doctor::doctor()),
        Action::Bench(options) => bench::bench(&options),
        Action::Check { protocol, litmus: Litmus { litmus: None, .. } } => check::check(&protocol),
        Action::Check { protocol, litmus: Litmus { litmus: Some(file), trace, outcome, svg } } => {
            litmus::litmus(&protocol, &file, trace, outcome.as_deref(), svg.as_deref())
        }
        Action::Pages { folder, fspcc } => pages::write(&folder, &fspcc),
        Action::Report { file, other: None, .. } => report::reprint(&file),
        Action::Report { file, other: Some(other), .. } => report::side_by_side(&file, &other),
    };
    match result {
        Ok(code) => exit(code),
        Err(report) => {
            eprintln!("{report}");
            exit(report.code.exit_code())
        }
    }
}

/// Help and version go to stdout; what could not be understood is E001.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_help {
        output::print(&error.to_string());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprint!("{error}");
        return exit(Code::Usage.exit_code());
    }
    let text = error.to_string();
    let what = text.strip_prefix("error: ").unwrap_or(&text);
    // What is wrong, and a tip if there is one; the usage lines after that are a command away.
    let lines = what.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let what = lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    eprintln!("{}", Report { code: Code::Usage, place: Place::Launcher, what });
    exit(Code::Usage.exit_code())
}

fn exit(code: i32) -> ExitCode {
    // An exit code is a byte; what does not fit must not become a success.
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
