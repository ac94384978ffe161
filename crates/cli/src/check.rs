//! `finespun check`: explores a protocol, and prints what was covered.

use std::io::Write;

use finespun_check::cashmere::{broadcast, migration};
use finespun_check::{
    Options, Summary, Violation, check_broadcast, check_cashmere, check_migration, check_strings_rc, check_strings_sc,
    protocols, tmk,
};
use finespun_errors::{Code, Place, Report};

/// Checks `protocol`. The exit code is 1 when a sentence does not hold; the run that leads there is printed.
pub fn check(protocol: &str) -> Result<i32, Report> {
    let mut stdout = std::io::stdout();
    // A closed pipe (`| head`) is no reason to stop with a panic.
    let mut say = |line: &str| drop(writeln!(stdout, "{line}"));
    if protocol == tmk::NAME {
        return Ok(exit_code(tmk::check_tmk(tmk::Options::default(), &mut say)));
    }
    if broadcast::NAMES.contains(&protocol) {
        return Ok(exit_code(check_broadcast(Options::default(), &mut say)));
    }
    if let Some((_, form)) = migration::NAMED.iter().find(|(name, _)| *name == protocol) {
        return Ok(exit_code(check_migration(Options { forms: &[*form], ..Options::default() }, &mut say)));
    }
    match protocol {
        "strings-rc" => return Ok(exit_code(check_strings_rc(Options::default(), &mut say))),
        "strings-sc" => return Ok(exit_code(check_strings_sc(Options::default(), &mut say))),
        _ => {}
    }
    let Some(what) = protocols::named(protocol) else {
        let names = protocols::all_names().join(", ");
        let what = format!("this build cannot check {protocol}; there is: {names}");
        return Err(Report { code: Code::Usage, place: Place::Launcher, what });
    };
    if let Some(note) = what.note {
        say(&format!("{protocol} is {note}"));
    }
    Ok(exit_code(check_cashmere(Options { forms: &what.forms, ..Options::default() }, &mut say)))
}

fn exit_code(found: Result<Summary, Violation>) -> i32 {
    match found {
        Ok(_) => 0,
        Err(violation) => {
            eprintln!("{violation}");
            1
        }
    }
}
