//! `finespun check`: explores a protocol, and prints what was covered.

use std::io::Write;

use finespun_check::{Options, check_cashmere, protocols};
use finespun_errors::{Code, Place, Report};

/// Checks `protocol`. The exit code is 1 when a sentence does not hold; the run that leads there is printed.
pub fn check(protocol: &str) -> Result<i32, Report> {
    let Some(what) = protocols::named(protocol) else {
        let what = format!("this build cannot check {protocol}; there is: {}", protocols::names().join(", "));
        return Err(Report { code: Code::Usage, place: Place::Launcher, what });
    };
    let mut stdout = std::io::stdout();
    // A closed pipe (`| head`) is no reason to stop with a panic.
    let mut say = |line: &str| drop(writeln!(stdout, "{line}"));
    if let Some(note) = what.note {
        say(&format!("{protocol} is {note}"));
    }
    match check_cashmere(Options { forms: &what.forms, ..Options::default() }, &mut say) {
        Ok(_) => Ok(0),
        Err(violation) => {
            eprintln!("{violation}");
            Ok(1)
        }
    }
}
