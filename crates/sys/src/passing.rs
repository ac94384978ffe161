//! Messages that carry descriptors, between processes of one host: over a pair of sockets that keep messages apart.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::check;

/// A message carries no more descriptors than the kernel takes at once.
pub const DESCRIPTORS_MAX: usize = 253;
/// Nor more bytes.
pub const BYTES_MAX: usize = 16 << 10;

/// Room for the control data of so many descriptors, aligned as the kernel wants it.
const CONTROL_WORDS: usize = (size_of::<libc::cmsghdr>() + DESCRIPTORS_MAX * size_of::<RawFd>()).div_ceil(8) + 2;

/// Two ends of a connection that keeps messages apart, closed at exec.
///
/// # Errors
/// The kernel's.
pub fn pair() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for two numbers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) })?;
    // SAFETY: the kernel returned them just now: open, and nothing else owns them.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// Sends a message with descriptors, which stay open here.
///
/// # Errors
/// The kernel's; `EINVAL` for more than a message can carry.
pub fn send(to: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    if bytes.is_empty() || bytes.len() > BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
        return Err(crate::invalid());
    }
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message_of(&mut piece);
    if !descriptors.is_empty() {
        let length = size_of_val(descriptors) as u32;
        message.msg_control = control.as_mut_ptr().cast::<c_void>();
        // SAFETY: plain arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as usize;
        // SAFETY: `control` has room for a header and `DESCRIPTORS_MAX` numbers, and is aligned for the header.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
            std::ptr::copy_nonoverlapping(descriptors.as_ptr(), libc::CMSG_DATA(header).cast(), descriptors.len());
        }
    }
    repeated(|| {
        // SAFETY: the message refers to `bytes` and `control`, which live, and to nothing else.
        unsafe { libc::sendmsg(to.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) }
    })
    .map(drop)
}

/// Waits for the next message: its bytes and its descriptors, which are closed at exec.
///
/// # Errors
/// The kernel's; `UnexpectedEof` when no process is left that could send; `EMFILE` where there is no number for a descriptor.
pub fn receive(from: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; BYTES_MAX];
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = message_of(&mut piece);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let got = repeated(|| {
        // SAFETY: the message refers to `bytes` and `control`, which live, and to nothing else.
        unsafe { libc::recvmsg(from.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) }
    })?;
    bytes.truncate(got);
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled `control` up to the length that it put into the message.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                let count = ((*header).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                descriptors.extend((0..count).map(|index| OwnedFd::from_raw_fd(data.add(index).read_unaligned())));
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    if got == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok((bytes, descriptors)) }
}

fn message_of(piece: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: zeros are a message without parts.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message
}

/// Repeats a call that a signal has interrupted.
fn repeated(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(result) => return Ok(result),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn messages_stay_apart_and_bring_their_descriptors() {
        let [one, other] = pair().unwrap();
        let file = File::open("/proc/self/comm").unwrap();
        send(one.as_fd(), b"first", &[file.as_raw_fd(), file.as_raw_fd()]).unwrap();
        send(one.as_fd(), b"second", &[]).unwrap();
        let (bytes, descriptors) = receive(other.as_fd()).unwrap();
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"first"[..], 2));
        // The position belongs to the open file, not to its numbers.
        let mut byte = [0; 1];
        let mut read = |file: OwnedFd| File::from(file).read(&mut byte).unwrap();
        assert_eq!(descriptors.into_iter().map(&mut read).sum::<usize>(), 2);
        assert_eq!(receive(other.as_fd()).unwrap().0, b"second");
        drop(one);
        assert_eq!(receive(other.as_fd()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_a_message_cannot_carry_is_refused() {
        let [one, _other] = pair().unwrap();
        assert!(send(one.as_fd(), b"", &[]).is_err());
        assert!(send(one.as_fd(), b"x", &[0; DESCRIPTORS_MAX + 1]).is_err());
        assert!(send(one.as_fd(), &vec![0; BYTES_MAX + 1], &[]).is_err());
    }
}
