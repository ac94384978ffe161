//! The limits of this process (`ulimit`) that an error of the kernel may come from.

use std::io;

/// A limit that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub of: &'static str,
    /// What a shell calls it.
    pub shell: &'static str,
    /// How much.
    pub value: u64,
    /// Counted in bytes.
    pub is_bytes: bool,
}

/// The limit that such an error comes from when it is reached, if one is set.
#[must_use]
pub fn behind(error: &io::Error) -> Option<Limit> {
    let (resource, of, shell, is_bytes) = match error.raw_os_error()? {
        libc::ENOMEM => (libc::RLIMIT_AS, "address space", "ulimit -v", true),
        libc::EMFILE => (libc::RLIMIT_NOFILE, "open files", "ulimit -n", false),
        libc::EAGAIN => (libc::RLIMIT_NPROC, "processes", "ulimit -u", false),
        libc::EFBIG => (libc::RLIMIT_FSIZE, "a file's size", "ulimit -f", true),
        _ => return None,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid struct to write to for the whole call.
    let got = unsafe { libc::getrlimit(resource, &raw mut limit) };
    let is_set = got == 0 && limit.rlim_cur != libc::RLIM_INFINITY;
    is_set.then_some(Limit { of, shell, value: limit.rlim_cur, is_bytes })
}

#[cfg(test)]
mod tests {
    use super::behind;
    use std::io::Error;

    #[test]
    fn only_errors_of_limits_have_one() {
        assert_eq!(behind(&Error::from_raw_os_error(libc::ENOENT)), None);
        assert_eq!(behind(&Error::other("words")), None);
        let files = behind(&Error::from_raw_os_error(libc::EMFILE));
        assert!(files.is_none_or(|limit| limit.shell == "ulimit -n" && limit.value > 0));
    }
}
