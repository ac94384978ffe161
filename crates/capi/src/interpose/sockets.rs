//! `recv(2)`, `send(2)` and kin.

use std::ffi::{c_int, c_uint, c_void};

use libc::{mmsghdr, msghdr, size_t, sockaddr, sockaddr_storage, socklen_t, ssize_t, timespec};

use super::bounce::Bounce;
use super::files::__chk_fail;
use super::pieces::{Pieces, piece};
use super::transfer::{Cut, cut_of, drain, fill};
use super::{errno, is_shared, is_shared_object, real};

/// Receives of a stream may be cut; one that is to wait for all goes on until it has all.
fn cut_receive(fd: c_int, bytes: usize, flags: c_int) -> Cut {
    match cut_of(fd, bytes) {
        Cut::Stream if flags & libc::MSG_WAITALL != 0 => Cut::Anywhere,
        cut @ (Cut::Stream | Cut::Anywhere | Cut::Nowhere) => cut,
    }
}

/// `recv(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(fd: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::recv(fd, buffer, bytes, flags) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe {
        fill(cut_receive(fd, bytes, flags), Pieces::new(&list), |at, bytes, _| real::recv(fd, at.cast(), bytes, flags))
    }
}

/// `send(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(fd: c_int, buffer: *const c_void, bytes: size_t, flags: c_int) -> ssize_t {
    if !is_shared(buffer, bytes) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::send(fd, buffer, bytes, flags) };
    }
    let list = [piece(buffer, bytes)];
    let flags = not_later(flags);
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe { drain(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, _| real::send(fd, at.cast(), bytes, flags)) }
}

/// MSG_ZEROCOPY would read the private buffer after the call has returned it. Without it the kernel copies, which it
/// may always do.
const fn not_later(flags: c_int) -> c_int {
    flags & !libc::MSG_ZEROCOPY
}

/// `recvfrom(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    if !is_shared(buffer, bytes) && !is_shared(from, size_of::<sockaddr_storage>()) && !is_shared_object(len) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::recvfrom(fd, buffer, bytes, flags, from, len) };
    }
    let list = [piece(buffer, bytes)];
    let mut name = Name::none();
    if !from.is_null() && !len.is_null() {
        // SAFETY: the caller's length.
        name.room = unsafe { len.read() };
    }
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    let got = unsafe {
        fill(cut_receive(fd, bytes, flags), Pieces::new(&list), |at, bytes, _| {
            name.len = name.room.min(NAME_MAX);
            let (to, len) = if from.is_null() { NO_NAME } else { (name.to(), &raw mut name.len) };
            real::recvfrom(fd, at.cast(), bytes, flags, to, len)
        })
    };
    if got >= 0 && !from.is_null() && !len.is_null() {
        // SAFETY: the caller's room for a name, of the size that the caller gave.
        unsafe {
            name.copy_to(from.cast());
            len.write(name.len);
        }
    }
    got
}

const NAME_MAX: socklen_t = size_of::<sockaddr_storage>() as socklen_t;
const NO_NAME: (*mut sockaddr, *mut socklen_t) = (std::ptr::null_mut(), std::ptr::null_mut());

/// A socket's address, for the kernel to write or read.
struct Name {
    place: sockaddr_storage,
    /// The length that the kernel gave.
    len: socklen_t,
    /// The room that the caller has.
    room: socklen_t,
}

impl Name {
    const fn none() -> Self {
        // SAFETY: a struct of integers, all zeros valid.
        Self { place: unsafe { std::mem::zeroed() }, len: 0, room: 0 }
    }

    fn to(&mut self) -> *mut sockaddr {
        (&raw mut self.place).cast()
    }

    /// Copies what there is and fits.
    ///
    /// # Safety
    /// `to` is writable for the caller's room.
    unsafe fn copy_to(&self, to: *mut u8) {
        let bytes = self.len.min(self.room).min(NAME_MAX) as usize;
        // SAFETY: `place` has NAME_MAX bytes; `to` by contract.
        unsafe { std::ptr::copy_nonoverlapping((&raw const self.place).cast(), to, bytes) };
    }

    /// Takes the caller's.
    ///
    /// # Safety
    /// `from` is null or readable for `len` bytes.
    unsafe fn taken_from(from: *const u8, len: socklen_t) -> Self {
        let mut name = Self::none();
        // A longer one is refused by the kernel for its length.
        name.len = len;
        if !from.is_null() {
            // SAFETY: by contract, and `place` has NAME_MAX bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(from, (&raw mut name.place).cast(), len.min(NAME_MAX) as usize);
            }
        }
        name
    }
}

/// `sendto(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    bytes: size_t,
    flags: c_int,
    to: *const sockaddr,
    len: socklen_t,
) -> ssize_t {
    if !is_shared(buffer, bytes) && !is_shared(to, len as usize) {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::sendto(fd, buffer, bytes, flags, to, len) };
    }
    let list = [piece(buffer, bytes)];
    // SAFETY: the caller's name.
    let mut name = unsafe { Name::taken_from(to.cast(), len) };
    let to = if to.is_null() { std::ptr::null() } else { name.to().cast_const() };
    let flags = not_later(flags);
    // SAFETY: the caller's buffer; the call gets memory of as many bytes as it is told.
    unsafe {
        drain(cut_of(fd, bytes), Pieces::new(&list), |at, bytes, _| real::sendto(fd, at.cast(), bytes, flags, to, len))
    }
}

/// The pieces of a message, if any of it is shared: the message, its list, its buffers, its name or its control data.
///
/// # Safety
/// `message` is null or as for `recvmsg(2)`.
unsafe fn shared_message<'a>(message: *const msghdr) -> Option<(Pieces<'a>, msghdr)> {
    if message.is_null() {
        return None;
    }
    // SAFETY: by contract; if it is shared, looking at it faults and is served.
    let copy = unsafe { message.read() };
    // SAFETY: by contract.
    let list = unsafe { Pieces::shared(copy.msg_iov, c_int::try_from(copy.msg_iovlen).unwrap_or(-1)) };
    let others = is_shared_object(message)
        || is_shared(copy.msg_name, copy.msg_namelen as usize)
        || is_shared(copy.msg_control, copy.msg_controllen);
    match list {
        Some(pieces) => Some((pieces, copy)),
        // SAFETY: by contract; as many pieces as the kernel takes, and none with an insane length among private ones.
        None if others && copy.msg_iovlen <= 1024 => Some((unsafe { Pieces::listed(&copy) }, copy)),
        None => None,
    }
}

/// `recvmsg(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's message.
    let Some((pieces, theirs)) = (unsafe { shared_message(message) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::recvmsg(fd, message, flags) };
    };
    // SAFETY: as above.
    errno::kept(|| unsafe { receive_message(fd, message, theirs, pieces, flags) })
}

unsafe fn receive_message(
    fd: c_int,
    message: *mut msghdr,
    theirs: msghdr,
    pieces: Pieces<'_>,
    flags: c_int,
) -> Result<usize, c_int> {
    let total = pieces.bytes();
    let (data, control) = (Bounce::new(total)?, Bounce::new(theirs.msg_controllen)?);
    let mut name = Name::none();
    name.room = theirs.msg_namelen;
    let mut one = piece(data.memory(), total);
    let mut ours = theirs;
    (ours.msg_iov, ours.msg_iovlen) = (&raw mut one, 1);
    if !theirs.msg_name.is_null() {
        (ours.msg_name, ours.msg_namelen) = (name.to().cast(), name.room.min(NAME_MAX));
    }
    if !theirs.msg_control.is_null() {
        ours.msg_control = control.memory().cast();
    }
    // SAFETY: every part of `ours` is private memory of the size that it says.
    let got = unsafe { real::recvmsg(fd, &raw mut ours, flags) };
    let Ok(got) = usize::try_from(got) else { return Err(errno::get()) };
    name.len = ours.msg_namelen;
    // SAFETY: the caller's memory, by the caller's sizes; the kernel gives no more than it was given room for.
    unsafe {
        pieces.scatter(0, data.memory(), got.min(total));
        if !theirs.msg_name.is_null() {
            name.copy_to(theirs.msg_name.cast());
        }
        if !theirs.msg_control.is_null() {
            let bytes = ours.msg_controllen.min(theirs.msg_controllen);
            std::ptr::copy_nonoverlapping(control.memory(), theirs.msg_control.cast(), bytes);
        }
        (*message).msg_namelen = ours.msg_namelen;
        (*message).msg_controllen = ours.msg_controllen;
        (*message).msg_flags = ours.msg_flags;
    }
    Ok(got)
}

/// `sendmsg(2)`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's message.
    let Some((pieces, theirs)) = (unsafe { shared_message(message) }) else {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::sendmsg(fd, message, flags) };
    };
    // SAFETY: as above.
    errno::kept(|| unsafe { send_message(fd, theirs, pieces, flags) })
}

unsafe fn send_message(fd: c_int, theirs: msghdr, pieces: Pieces<'_>, flags: c_int) -> Result<usize, c_int> {
    let total = pieces.bytes();
    let (data, control) = (Bounce::new(total)?, Bounce::new(theirs.msg_controllen)?);
    // SAFETY: the caller's name.
    let mut name = unsafe { Name::taken_from(theirs.msg_name.cast(), theirs.msg_namelen) };
    let mut one = piece(data.memory(), total);
    let mut ours = theirs;
    (ours.msg_iov, ours.msg_iovlen) = (&raw mut one, 1);
    if !theirs.msg_name.is_null() {
        ours.msg_name = name.to().cast();
    }
    // SAFETY: the caller's memory, by the caller's sizes.
    unsafe {
        pieces.gather(0, data.memory(), total);
        if !theirs.msg_control.is_null() {
            std::ptr::copy_nonoverlapping(theirs.msg_control.cast(), control.memory(), theirs.msg_controllen);
            ours.msg_control = control.memory().cast();
        }
    }
    // SAFETY: every part of `ours` is private memory of the size that it says.
    let put = unsafe { real::sendmsg(fd, &raw const ours, not_later(flags)) };
    usize::try_from(put).map_err(|_| errno::get())
}

/// Is any part of these messages shared?
///
/// # Safety
/// `messages` points to `count` messages as for `recvmmsg(2)`.
unsafe fn any_shared(messages: *const mmsghdr, count: c_uint) -> bool {
    // The kernel looks at 1024 at most.
    (0..count.min(1024) as usize).any(|index| {
        let message = messages.wrapping_add(index);
        // SAFETY: by contract.
        is_shared_object(message) || unsafe { shared_message(&raw const (*message).msg_hdr) }.is_some()
    })
}

/// `recvmmsg(2)`, message by message if any of them is shared.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the caller's messages. With a time limit the call is the kernel's to make.
    if messages.is_null() || !timeout.is_null() || !unsafe { any_shared(messages, count) } {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
    }
    let one_by_one = flags & !libc::MSG_WAITFORONE;
    // SAFETY: the caller's messages, `count` of them.
    unsafe {
        each_message(messages, count, |message, index| {
            let no_waiting = index > 0 && flags & libc::MSG_WAITFORONE != 0;
            recvmsg(fd, message, if no_waiting { one_by_one | libc::MSG_DONTWAIT } else { one_by_one })
        })
    }
}

/// `sendmmsg(2)`, message by message if any of them is shared.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    // SAFETY: the caller's messages.
    if messages.is_null() || !unsafe { any_shared(messages, count) } {
        // SAFETY: the caller's own arguments, under the caller's promise.
        return unsafe { real::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: the caller's messages, `count` of them.
    unsafe { each_message(messages, count, |message, _| sendmsg(fd, message, flags)) }
}

/// Moves messages until one fails; how many were moved, or -1 if none.
///
/// # Safety
/// `messages` points to `count` messages, writable.
unsafe fn each_message(
    messages: *mut mmsghdr,
    count: c_uint,
    mut call: impl FnMut(*mut msghdr, usize) -> ssize_t,
) -> c_int {
    let moved = errno::kept(|| {
        for index in 0..count.min(1024) as usize {
            let message = messages.wrapping_add(index);
            // SAFETY: by contract.
            let bytes = call(unsafe { &raw mut (*message).msg_hdr }, index);
            if bytes < 0 {
                return if index > 0 { Ok(index) } else { Err(errno::get()) };
            }
            // SAFETY: by contract.
            unsafe { (*message).msg_len = bytes as c_uint };
        }
        Ok(count.min(1024) as usize)
    });
    moved as c_int
}

/// `recv` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    if bytes > room {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { recv(fd, buffer, bytes, flags) }
}

/// `recvfrom` as `_FORTIFY_SOURCE` calls it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    if bytes > room {
        // SAFETY: ends the process.
        unsafe { __chk_fail() }
    }
    // SAFETY: the caller's own arguments, under the caller's promise.
    unsafe { recvfrom(fd, buffer, bytes, flags, from, len) }
}
