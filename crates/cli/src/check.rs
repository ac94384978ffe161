//! `finespun check`: explores a protocol, and prints what was covered.

use std::io::Write;

use finespun_errors::{Code, Place, Report};

/// Checks `protocol`. The exit code is 1 when a sentence does not hold; the run that leads there is printed.
pub fn check(protocol: &str) -> Result<i32, Report> {
    if protocol != "csm-2l" {
        let what = format!("this build cannot check {protocol}");
        return Err(Report { code: Code::Usage, place: Place::Launcher, what });
    }
    let mut stdout = std::io::stdout();
    // A closed pipe (`| head`) is no reason to stop with a panic.
    let mut say = |line: &str| drop(writeln!(stdout, "{line}"));
    match finespun_check::check_csm_2l(finespun_check::Options::default(), &mut say) {
        Ok(_) => Ok(0),
        Err(violation) => {
            eprintln!("{violation}");
            Ok(1)
        }
    }
}
