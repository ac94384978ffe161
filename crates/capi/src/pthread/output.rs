//! The C library's standard output.

unsafe extern "C" {
    pub static stdout: *mut libc::FILE;
}

/// Half a line that a thread has written comes out no later than the thread ends.
pub fn flush_stdout() {
    // SAFETY: the C library's stream.
    unsafe { libc::fflush(stdout) };
}
