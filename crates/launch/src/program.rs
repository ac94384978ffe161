//! Finds the program, as a shell would, before anything is started.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use finespun_errors::{Code, Place, Report};
use nix::unistd::{AccessFlags, access};

/// The file to execute for `name`: itself if it has a slash, else the first executable file of that name along `PATH`.
///
/// # Errors
/// E002, saying what is wrong with it.
pub fn find(name: &OsStr) -> Result<PathBuf, Report> {
    find_along(name, env::var_os("PATH").as_deref())
}

fn find_along(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Report> {
    let refuse = |what: String| Report { code: Code::Program, place: Place::Launcher, what };
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        return match obstacle(Path::new(name)) {
            None => Ok(PathBuf::from(name)),
            Some(obstacle) => Err(refuse(format!("{shown}: {obstacle}"))),
        };
    }
    let places = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let candidates = places.iter().filter(|place| place.is_absolute()).map(|place| place.join(name));
    if let Some(found) = candidates.filter(|_| !name.is_empty()).find(|file| obstacle(file).is_none()) {
        return Ok(found);
    }
    if !name.is_empty() && Path::new(name).is_file() {
        return Err(refuse(format!("{shown} is not along PATH; there is one in this directory: write ./{shown}")));
    }
    Err(refuse(format!("no program \"{shown}\" along PATH")))
}

/// Why a file cannot be executed, if so.
fn obstacle(file: &Path) -> Option<String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("no such file".into()),
        Err(error) => Some(error.to_string()),
        Ok(metadata) if metadata.is_dir() => Some("is a directory".into()),
        Ok(metadata) if !metadata.is_file() => Some("is not a file".into()),
        Ok(_) => access(file, AccessFlags::X_OK).err().map(|_| "is not executable (chmod +x?)".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::find_along;

    fn find(name: &str) -> Result<std::path::PathBuf, String> {
        find_along(OsStr::new(name), Some(OsStr::new("/nonexistent:/bin:/usr/bin"))).map_err(|report| report.what)
    }

    #[test]
    fn a_plain_name_is_looked_for_along_the_path() {
        assert_eq!(find("sh").as_deref(), Ok(Path::new("/bin/sh")));
        assert_eq!(find("no-such-program"), Err("no program \"no-such-program\" along PATH".into()));
        assert_eq!(find(""), Err("no program \"\" along PATH".into()));
    }

    #[test]
    fn a_file_that_is_here_but_not_along_the_path_gets_a_hint() {
        assert!(find("Cargo.toml").is_err_and(|what| what.ends_with("write ./Cargo.toml")));
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        assert_eq!(find("/bin/sh").as_deref(), Ok(Path::new("/bin/sh")));
        assert_eq!(find("./no-such-program"), Err("./no-such-program: no such file".into()));
        assert_eq!(find("/bin/"), Err("/bin/: is a directory".into()));
        assert_eq!(find("/proc/self/status"), Err("/proc/self/status: is not executable (chmod +x?)".into()));
        assert_eq!(find("/dev/null"), Err("/dev/null: is not a file".into()));
    }
}
