//! Room in the kernel's queues: one descriptor says that a socket which refused bytes can take some.

use finespun_sys::{calls, descriptors};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Edge-triggered and for room alone: it fires when a socket that refused bytes can take some, and at no other
/// time but the end of a connection.
pub(crate) fn watch_for_room(sockets: &[Option<OwnedFd>]) -> Result<OwnedFd, Errno> {
    let room = descriptors::aside(epoll::create(epoll::CreateFlags::CLOEXEC)?);
    let room = room.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
    for (node, socket) in sockets.iter().enumerate() {
        if let Some(socket) = socket {
            let data = epoll::EventData::new_u64(node as u64);
            epoll::add(&room, socket, data, epoll::EventFlags::OUT | epoll::EventFlags::ET)?;
        }
    }
    // Each socket has been reported once already, for it has room now.
    forget_room(&room);
    Ok(room)
}

/// Takes note that there is room: the descriptor stays quiet until a socket has been full again.
pub(crate) fn forget_room(room: &OwnedFd) {
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 16];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        calls::one();
        if !epoll::wait(room, &mut events, Some(&now)).is_ok_and(|count| count == events.len()) {
            return;
        }
    }
}
