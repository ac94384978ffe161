//! What launcher and nodes tell each other: one JSON line each, over a stream socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use finespun_job::Report;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use serde::{Deserialize, Serialize};

use crate::spins::Spin;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// From the launcher to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The first line: what the node needs beyond the job.
    Begin {
        /// Transport tcp: descriptor of a memfd with the job's token.
        token: Option<i32>,
        /// Descriptor of the stream on which the node's service reports, straight to the launcher: an error may end
        /// the whole service process at once, and must not be lost with it.
        service: i32,
        /// With `--prefix`: the write ends for stdout and stderr of each view.
        outputs: Option<Vec<[i32; 2]>>,
    },
    /// Transport tcp: where all nodes listen on the loopback interface, by node.
    Peers {
        /// The ports.
        ports: Vec<u16>,
    },
    /// A process has ended that is no child of the node's, perhaps one of its views.
    Gone {
        /// Its process id.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// Pass a signal on to the program's processes.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// All processes of the program have ended: stop serving and end.
    Finish,
}

/// From a node to the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Transport tcp: the node listens here.
    Listening {
        /// The port on the loopback interface.
        port: u16,
    },
    /// A process of the program runs.
    Spawned {
        /// Its view.
        view: u32,
        /// Its process id.
        pid: u32,
    },
    /// Passed on from a process of the program, or, without a view, what keeps the node itself from working.
    Reported {
        /// Who reports.
        view: Option<u32>,
        /// What.
        report: Report,
    },
    /// A processor waits in a way that may never end.
    Spins(Spin),
    /// A child of the node's has ended that is none of its views: another node's, or one that the program has left behind.
    Gone {
        /// Its process id.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// A process of the program ended.
    Ended {
        /// Its view.
        view: u32,
        /// How.
        exit: Exit,
    },
}

/// One end of a control stream, read by lines and without ever waiting, unless told to.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    partial: Vec<u8>,
}

/// What one look at a stream gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The whole lines, without their ends.
    pub lines: Vec<String>,
    /// The other side is gone.
    pub closed: bool,
}

impl Lines {
    /// Reads and writes lines on a connected stream.
    #[must_use]
    pub const fn new(stream: UnixStream) -> Self {
        Self { stream, partial: Vec::new() }
    }

    /// Reads and writes lines on an inherited descriptor.
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self::new(UnixStream::from(fd))
    }

    /// All lines that are there now.
    ///
    /// # Errors
    /// What the socket says, except that the peer is gone.
    pub fn receive(&mut self) -> io::Result<Received> {
        let mut chunk = [0; 4096];
        let closed = loop {
            match recv(self.stream.as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT) {
                Ok(0) | Err(Errno::ECONNRESET) => break true,
                Ok(length) => self.partial.extend_from_slice(&chunk[..length]),
                Err(Errno::EAGAIN) => break false,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        Ok(Received { lines: self.take_lines(), closed })
    }

    /// Waits for the next line.
    ///
    /// # Errors
    /// `UnexpectedEof` when the peer is gone, and what the socket says.
    pub fn wait_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
                let line = self.partial.drain(..=end).collect::<Vec<_>>();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.partial.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends one line.
    ///
    /// # Errors
    /// What the socket says; a peer that is gone is `BrokenPipe`.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        (&self.stream).write_all(&line)
    }

    fn take_lines(&mut self) -> Vec<String> {
        let Some(last) = self.partial.iter().rposition(|&byte| byte == b'\n') else { return Vec::new() };
        let whole = self.partial.drain(..=last).collect::<Vec<_>>();
        whole[..last].split(|&byte| byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::{Command, Event, Exit, Lines, Received};

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let (mut theirs, ours) = UnixStream::pair().expect("a socket pair");
        let mut lines = Lines::new(ours);
        assert_eq!(lines.receive().expect("readable"), Received::default());
        theirs.write_all(b"one\ntw").expect("writable");
        assert_eq!(lines.receive().expect("readable").lines, ["one"]);
        theirs.write_all(b"o\n\nthree\n").expect("writable");
        assert_eq!(lines.wait_line().expect("a line"), "two");
        drop(theirs);
        let rest = lines.receive().expect("readable");
        assert_eq!((rest.lines, rest.closed), (vec![String::new(), "three".into()], true));
    }

    #[test]
    fn what_is_sent_is_received() {
        let (theirs, ours) = UnixStream::pair().expect("a socket pair");
        let (theirs, mut ours) = (Lines::new(theirs), Lines::new(ours));
        let event = Event::Ended { view: 1, exit: Exit::Signal(9) };
        theirs.send(&event).expect("sent");
        assert_eq!(serde_json::from_str::<Event>(&ours.wait_line().expect("a line")).expect("JSON"), event);
        ours.send(&Command::Finish).expect("sent");
        drop(theirs);
        assert!(ours.send(&Command::Finish).is_err());
    }
}
