//! Transfers between the program's pieces and a descriptor, through a private buffer.
//!
//! What the caller sees is what one call would have done: the count, short counts where they may be, `errno` on failure only.

use std::ffi::c_int;

use super::bounce::{Bounce, CHUNK};
use super::errno;
use super::pieces::Pieces;

/// How a long transfer may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Into calls one after another: a regular file.
    Anywhere,
    /// The same, but a call that reads returns what it has: a pipe, a stream socket.
    Stream,
    /// Not at all: messages, and devices, where a call may be one unit.
    Nowhere,
}

/// How this transfer may be cut; not asked for one that fits into a kept buffer.
pub fn cut_of(fd: c_int, bytes: usize) -> Cut {
    if bytes <= CHUNK {
        return Cut::Nowhere;
    }
    // SAFETY: a struct of integers, all zeros valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable, and private.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Cut::Nowhere;
    }
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFBLK => Cut::Anywhere,
        libc::S_IFIFO => Cut::Stream,
        libc::S_IFSOCK if is_stream_socket(fd) => Cut::Stream,
        _ => Cut::Nowhere,
    }
}

fn is_stream_socket(fd: c_int) -> bool {
    let (mut kind, mut len): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: `kind` and `len` are writable and of the sizes given.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut len) };
    result == 0 && kind == libc::SOCK_STREAM
}

/// Reads into the pieces. `call(memory, bytes, done)` is the real call, `done` bytes after the start. It returns the
/// count, which may be larger than `bytes` (a datagram's real length), or -1.
///
/// # Safety
/// `call` writes no more than `bytes` bytes to `memory`.
pub unsafe fn fill(cut: Cut, pieces: Pieces<'_>, call: impl FnMut(*mut u8, usize, usize) -> isize) -> isize {
    // SAFETY: by contract.
    errno::kept(|| unsafe { try_fill(cut, pieces, call) })
}

unsafe fn try_fill(
    cut: Cut,
    pieces: Pieces<'_>,
    mut call: impl FnMut(*mut u8, usize, usize) -> isize,
) -> Result<usize, c_int> {
    let total = pieces.bytes();
    let each = if cut == Cut::Nowhere { total } else { total.min(CHUNK) };
    let bounce = Bounce::new(each)?;
    let mut done = 0;
    loop {
        let want = each.min(total - done);
        let Ok(got) = usize::try_from(call(bounce.memory(), want, done)) else { return partly(done) };
        // SAFETY: `call` filled so many bytes; the pieces have `total`.
        unsafe { pieces.scatter(done, bounce.memory(), got.min(want)) };
        done += got;
        if got != want || done >= total || cut == Cut::Stream {
            return Ok(done);
        }
    }
}

/// Writes the pieces. `call` is as for [`fill`].
///
/// # Safety
/// None needed of the caller but what made the pieces.
pub unsafe fn drain(cut: Cut, pieces: Pieces<'_>, call: impl FnMut(*const u8, usize, usize) -> isize) -> isize {
    errno::kept(|| try_drain(cut, pieces, call))
}

fn try_drain(
    cut: Cut,
    pieces: Pieces<'_>,
    mut call: impl FnMut(*const u8, usize, usize) -> isize,
) -> Result<usize, c_int> {
    let total = pieces.bytes();
    let each = if cut == Cut::Nowhere { total } else { total.min(CHUNK) };
    let bounce = Bounce::new(each)?;
    let mut done = 0;
    loop {
        let want = each.min(total - done);
        // SAFETY: `bounce` has room for `each` bytes; the pieces have `total`.
        unsafe { pieces.gather(done, bounce.memory(), want) };
        let Ok(put) = usize::try_from(call(bounce.memory(), want, done)) else { return partly(done) };
        done += put;
        if put != want || done >= total {
            return Ok(done);
        }
    }
}

/// A later call failed: what was moved before counts, and the failure shows in the program's next call.
fn partly(done: usize) -> Result<usize, c_int> {
    if done > 0 { Ok(done) } else { Err(errno::get()) }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::piece;
    use super::*;

    /// Runs a transfer of so many bytes against a call that moves up to `most` and then fails; the result, `errno` and
    /// the sizes asked for.
    fn fill_with(cut: Cut, bytes: usize, mut answers: Vec<isize>) -> (isize, c_int, Vec<usize>) {
        let mut memory = vec![0_u8; bytes];
        let list = [piece(memory.as_mut_ptr(), bytes)];
        let mut asked = Vec::new();
        errno::set(0);
        // SAFETY: the piece is `memory`; the call fills at most what it is asked.
        let result = unsafe {
            fill(cut, Pieces::new(&list), |at, want, _| {
                asked.push(want);
                let answer = answers.remove(0);
                at.write_bytes(1, want.min(answer.max(0) as usize));
                errno::set(libc::EAGAIN);
                answer
            })
        };
        let whole = result.max(0) as usize;
        assert!(memory.iter().take(whole).all(|&byte| byte == 1) && memory.iter().skip(whole).all(|&byte| byte == 0));
        (result, errno::get(), asked)
    }

    const ONE: isize = CHUNK as isize;

    #[test]
    fn a_file_is_read_to_the_end_in_pieces() {
        let two_and_a_bit = 2 * CHUNK + 5;
        let read = fill_with(Cut::Anywhere, two_and_a_bit, vec![ONE, ONE, 5]);
        assert_eq!(read, (2 * ONE + 5, 0, vec![CHUNK, CHUNK, 5]));
        let short = fill_with(Cut::Anywhere, two_and_a_bit, vec![ONE, 7]);
        assert_eq!(short, (ONE + 7, 0, vec![CHUNK, CHUNK]));
    }

    #[test]
    fn a_stream_returns_what_it_has_and_a_message_comes_whole() {
        assert_eq!(fill_with(Cut::Stream, 3 * CHUNK, vec![ONE]), (ONE, 0, vec![CHUNK]));
        assert_eq!(fill_with(Cut::Nowhere, 3 * CHUNK, vec![9]), (9, 0, vec![3 * CHUNK]));
    }

    #[test]
    fn a_failure_after_the_first_piece_is_a_short_count() {
        assert_eq!(fill_with(Cut::Anywhere, 2 * CHUNK, vec![ONE, -1]), (ONE, 0, vec![CHUNK, CHUNK]));
        assert_eq!(fill_with(Cut::Anywhere, 2 * CHUNK, vec![-1]), (-1, libc::EAGAIN, vec![CHUNK]));
    }

    #[test]
    fn a_write_goes_on_until_all_is_written_or_one_call_is_short() {
        let memory: Vec<u8> = (0..3 * CHUNK).map(|index| (index / CHUNK) as u8).collect();
        let list = [piece(memory.as_ptr(), memory.len())];
        let mut seen = Vec::new();
        // SAFETY: the piece is `memory`; the first byte of what the call gets is readable.
        let put = unsafe {
            drain(Cut::Stream, Pieces::new(&list), |at, want, done| {
                seen.push((*at, done));
                if done == 2 * CHUNK { 10 } else { want as isize }
            })
        };
        assert_eq!(put, 2 * ONE + 10);
        assert_eq!(seen, [(0, 0), (1, CHUNK), (2, 2 * CHUNK)]);
    }
}
