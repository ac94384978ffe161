//! `--prefix`: the program's output through pipes, by whole lines, each with its process in front.
//!
//! One thread of the launcher reads all pipes and is the only writer of stdout and stderr, so no line is ever torn.
//! When the reader of our output goes away, the pipes are closed, and the program meets SIGPIPE as it would without us. Any other
//! failure is the launcher's to tell: a full device must not pass for a good end.

use std::io::{self, Read, Write, pipe};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// A line longer than this is cut, so that a program that never ends its line cannot fill our memory.
const LINE_MAX: usize = 1 << 20;

/// The write ends of one node: stdout and stderr for each view.
pub type WriteEnds = Vec<[PipeWriter; 2]>;

/// The thread that writes the program's output.
pub struct Output {
    thread: JoinHandle<Option<io::Error>>,
}

impl Output {
    /// Makes the pipes of all processes and starts the thread. It ends when all write ends are closed, or when nothing can be written
    /// any more: then the pipe that is returned last says why.
    pub fn start(nodes: u32, views: u32) -> io::Result<(Self, Vec<WriteEnds>, PipeReader)> {
        let mut sources = Vec::new();
        let mut write_ends = Vec::new();
        for node in 0..nodes {
            let mut of_node = Vec::new();
            for view in 0..views {
                let prefix = format!("[n{node}.v{view}] ");
                of_node.push([
                    Source::open(Stream::Stdout, &prefix, &mut sources)?,
                    Source::open(Stream::Stderr, &prefix, &mut sources)?,
                ]);
            }
            write_ends.push(of_node);
        }
        let (unwritten, mut tell) = pipe()?;
        let work = move || {
            let error = pump(&mut sources).err();
            if let Some(error) = &error {
                // Before the program's pipes close: its end by SIGPIPE is no news then.
                let _ = tell.write_all(error.to_string().as_bytes()); // the launcher has ended
            }
            error
        };
        let thread = thread::Builder::new().name("output".into()).spawn(work)?;
        Ok((Self { thread }, write_ends, unwritten))
    }

    /// Waits until everything is written, or nothing can be; what has kept it from being written.
    pub fn drain(self) -> Option<io::Error> {
        self.thread.join().ok().flatten() // a panic of the thread has already been shown
    }
}

/// Raises the soft limit of open files as far as allowed; returns what it was, for the children.
pub fn raise_open_files() -> io::Result<(rlim_t, rlim_t)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok((soft, hard))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => write_and_flush(io::stdout().lock(), bytes),
            Self::Stderr => write_and_flush(io::stderr().lock(), bytes),
        }
    }
}

fn write_and_flush(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

struct Source {
    stream: Stream,
    pipe: PipeReader,
    lines: Prefixer,
}

impl Source {
    fn open(stream: Stream, prefix: &str, sources: &mut Vec<Self>) -> io::Result<PipeWriter> {
        let (reader, writer) = pipe()?;
        sources.push(Self { stream, pipe: reader, lines: Prefixer::new(prefix) });
        Ok(writer)
    }

    /// Reads once and writes the lines that became whole. False at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16384];
        let (text, more) = match self.pipe.read(&mut chunk) {
            Ok(0) => (self.lines.rest(), false),
            Ok(length) => (self.lines.take(&chunk[..length]), true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(_) => (self.lines.rest(), false),
        };
        match self.stream.write(&text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| more),
        }
    }
}

fn pump(sources: &mut Vec<Source>) -> io::Result<()> {
    while !sources.is_empty() {
        let mut fds =
            sources.iter().map(|source| PollFd::new(source.pipe.as_fd(), PollFlags::POLLIN)).collect::<Vec<_>>();
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let ready = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect::<Vec<_>>();
        drop(fds);
        let mut ready = ready.into_iter();
        let mut failure = None;
        sources.retain_mut(|source| {
            let is_idle = failure.is_some() || !ready.next().unwrap_or(false);
            is_idle || source.advance().unwrap_or_else(|error| failure.replace(error).is_none())
        });
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(())
}

/// Puts a prefix before each line, and holds back a line until it is whole.
struct Prefixer {
    prefix: Vec<u8>,
    partial: Vec<u8>,
}

impl Prefixer {
    fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into(), partial: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                text.extend_from_slice(&self.prefix);
                text.append(&mut self.partial);
            } else if self.partial.len() > LINE_MAX {
                text.append(&mut self.rest());
            }
        }
        text
    }

    /// The last line, if it has no end of its own: it gets one.
    fn rest(&mut self) -> Vec<u8> {
        if self.partial.is_empty() {
            return Vec::new();
        }
        self.take(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_MAX, Prefixer};

    #[test]
    fn lines_are_held_back_until_they_are_whole() {
        let mut lines = Prefixer::new("[n1.v0] ");
        assert_eq!(lines.take(b"ab"), b"");
        assert_eq!(lines.take(b"c\n\nde"), b"[n1.v0] abc\n[n1.v0] \n");
        assert_eq!(lines.rest(), b"[n1.v0] de\n");
        assert_eq!(lines.rest(), b"");
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut lines = Prefixer::new("> ");
        let text = lines.take(&vec![b'x'; LINE_MAX + 1]);
        assert_eq!(text.len(), LINE_MAX + 4);
        assert!(text.starts_with(b"> x") && text.ends_with(b"x\n"));
        assert_eq!(lines.rest(), b"");
    }
}
