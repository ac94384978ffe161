//! `finespun bench`.

use std::env;
use std::fs;
use std::path::Path;

use finespun_bench::{Plan, Results, Setting, draw, draw_scale, programs_beside, tables};
use finespun_errors::{Code, Place, Report};
use finespun_job::{Faults, Transport, protocols};

use crate::options::Bench;
use crate::output;

/// Measures and prints.
pub fn bench(options: &Bench) -> Result<i32, Report> {
    let finespun = env::current_exe().map_err(|error| machine(format!("the command's own path: {error}")))?;
    let programs = programs_beside(&finespun).ok_or_else(|| {
        machine(format!("the programs to measure are not beside {}: expected ../libexec/finespun", finespun.display()))
    })?;
    let plan = Plan {
        finespun,
        programs,
        settings: settings(options)?,
        operations: !options.no_operations,
        applications: !options.no_applications,
        scale: options.scale,
        tiny: options.tiny,
        repeat: options.repeat,
        rounds: options.rounds,
    };
    let results = finespun_bench::run(&plan, &mut |what| eprintln!("bench: {what}")).map_err(machine)?;
    output::print(&tables(&results));
    if let Some(path) = &options.json {
        write_json(&results, path)?;
    }
    if let Some(path) = &options.svg {
        let drawn = if options.scale { draw_scale(&results.scale, path) } else { draw(&results, path) };
        drawn.map_err(machine)?;
    }
    Ok(0)
}

fn write_json(results: &Results, path: &Path) -> Result<(), Report> {
    let refuse = |error: &dyn std::fmt::Display| crate::report::refuse(path, &error.to_string());
    let text = serde_json::to_string_pretty(results).map_err(|error| refuse(&error))?;
    fs::write(path, text).map_err(|error| refuse(&error))
}

/// Each protocol over each transport that it runs on, with each mechanism.
fn settings(options: &Bench) -> Result<Vec<Setting>, Report> {
    let is_all = options.protocols.iter().any(|name| name == "all");
    let all = || protocols::PROTOCOLS.iter().map(|each| each.name.to_owned()).collect();
    let names: Vec<String> = if is_all { all() } else { options.protocols.clone() };
    let mut settings = Vec::new();
    for name in &names {
        // A name that runs on none of them is a mistake; one that lacks some is measured on the others.
        let mut refused = Err(String::new());
        for &transport in &options.transports {
            refused = match (protocols::named(name, transport), refused) {
                (Ok(_), _) => {
                    settings.extend(options.faults.iter().map(|&faults| setting(name, transport, faults)));
                    Ok(())
                }
                (Err(_), Ok(())) => Ok(()),
                (Err(why), Err(_)) => Err(why),
            };
        }
        refused.map_err(|what| Report { code: Code::Usage, place: Place::Launcher, what })?;
    }
    Ok(settings)
}

fn setting(protocol: &str, transport: Transport, faults: Faults) -> Setting {
    let transport = match transport {
        Transport::Shm => "shm",
        Transport::Tcp => "tcp",
    };
    let faults = match faults {
        Faults::Auto => "auto",
        Faults::Uffd => "uffd",
        Faults::Mprotect => "mprotect",
    };
    Setting { protocol: protocol.into(), transport: transport.into(), faults: faults.into() }
}

fn machine(what: String) -> Report {
    Report { code: Code::Machine, place: Place::Launcher, what }
}
