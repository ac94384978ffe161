//! `finespun check`: explores a protocol.

use finespun_errors::{Code, Place, Report};

/// Checks `protocol` and prints what was covered.
pub fn check(protocol: &str) -> Result<i32, Report> {
    let what = format!("this build cannot check {protocol}");
    Err(Report { code: Code::Usage, place: Place::Launcher, what })
}
