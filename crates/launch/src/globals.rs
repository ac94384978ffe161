//! `--check globals`, after the fact: the job's table of accesses to private variables, told in words.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use finespun_errors::{Code, Place, Report};
use finespun_job::Job;
use finespun_symbols::{Line, Symbols, Variable};
use finespun_sys::watch::record::{Entry, Record};
use finespun_sys::watch::table::{Header, PATH_MAX, State, place};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

use crate::diagnosis::{Diagnosis, listed, who};

/// A byte that one process changed and another read afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finding {
    /// Its address, as the linker has it.
    address: u64,
    writer: Record,
    reader: Record,
}

/// What the table's header says.
struct Watched {
    state: State,
    start: usize,
    bytes: usize,
    accesses: u64,
    program: PathBuf,
}

/// What the table of this job says.
///
/// # Errors
/// What the kernel says.
pub fn diagnose(table: BorrowedFd<'_>, job: &Job) -> io::Result<Diagnosis> {
    let file = File::from(table.try_clone_to_owned()?);
    let watched = Watched::read(&file)?;
    match watched.state {
        State::Waiting => return Ok(Diagnosis::default()),
        State::Shared => {
            let note = "--check globals: the program's variables are shared (fspcc --share-globals): nothing to check";
            return Ok(Diagnosis::note(note.to_owned()));
        }
        State::Watching => {}
    }
    let mut findings = Vec::new();
    for process in 0..(job.nodes * job.views) as usize {
        watched.findings_of(&file, process, &mut findings)?;
    }
    let names = Symbols::read(&watched.program).ok();
    let told = tell(&findings, names.as_ref(), job);
    if told.is_empty() {
        let accesses = watched.accesses;
        return Ok(Diagnosis::note(format!("--check globals: nothing found in {accesses} accesses")));
    }
    Ok(Diagnosis::report(report(&told)))
}

impl Watched {
    fn read(file: &File) -> io::Result<Self> {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at as u64).map(|()| u64::from_ne_bytes(bytes))
        };
        let length = (word(std::mem::offset_of!(Header, path))? as usize).min(PATH_MAX);
        let mut path = vec![0; length];
        file.read_exact_at(&mut path, size_of::<Header>() as u64)?;
        Ok(Self {
            state: State::of(word(std::mem::offset_of!(Header, state))?),
            start: word(std::mem::offset_of!(Header, start))? as usize,
            bytes: word(std::mem::offset_of!(Header, bytes))? as usize,
            accesses: word(std::mem::offset_of!(Header, accesses))?,
            program: PathBuf::from(OsStr::from_bytes(&path)),
        })
    }

    /// What this process read of others'.
    fn findings_of(&self, file: &File, process: usize, into: &mut Vec<Finding>) -> io::Result<()> {
        let section = place(1 + process, self.bytes, 0)..place(2 + process, self.bytes, 0);
        for data in data_in(file, section.clone())? {
            let mut words = vec![0; data.len()];
            file.read_exact_at(&mut words, data.start as u64)?;
            for (index, word) in words.chunks_exact(8).enumerate() {
                let Entry::By(reader) = entry(word) else { continue };
                let byte = (data.start - section.start) / 8 + index;
                let mut writer = [0; 8];
                file.read_exact_at(&mut writer, place(0, self.bytes, byte) as u64)?;
                let Entry::By(writer) = entry(&writer) else { continue };
                into.push(Finding { address: (self.start + byte) as u64, writer, reader });
            }
        }
        Ok(())
    }
}

fn entry(word: &[u8]) -> Entry {
    Entry::decode(u64::from_ne_bytes(word.try_into().expect("eight bytes")))
}

/// The parts of a sparse file that hold anything, in pieces that are not too large to read.
fn data_in(file: &File, within: Range<usize>) -> io::Result<Vec<Range<usize>>> {
    const PIECE: usize = 1 << 20;
    let seek = |from: usize, what| match lseek(file.as_fd(), from as i64, what) {
        Ok(found) => Ok(usize::try_from(found).map_err(io::Error::other)?.min(within.end)),
        Err(Errno::ENXIO) => Ok(within.end),
        Err(error) => Err(io::Error::from(error)),
    };
    let mut pieces = Vec::new();
    let mut at = within.start;
    while at < within.end {
        let start = seek(at, Whence::SeekData)?;
        if start >= within.end {
            break;
        }
        let end = seek(start, Whence::SeekHole)?;
        // The sections begin at multiples of a word in whole pages, so no piece cuts a word.
        pieces.extend((start..end).step_by(PIECE).map(|piece| piece..(piece + PIECE).min(end)));
        at = end;
    }
    Ok(pieces)
}

/// One line for each variable.
fn tell(findings: &[Finding], names: Option<&Symbols>, job: &Job) -> Vec<String> {
    let mut of_variables = BTreeMap::new();
    for finding in findings {
        let start = finding.address - u64::from(finding.reader.before);
        let Some((variable, shown)) = variable(finding, start, names) else { continue };
        of_variables.entry(variable).or_insert((finding, shown));
    }
    let line = |(finding, shown): (&Finding, String)| {
        let (writer, reader) = (finding.writer, finding.reader);
        format!(
            "{shown}: written by {} {}, read by {} {}",
            who(writer.processor, job),
            at(writer, names),
            who(reader.processor, job),
            at(reader, names)
        )
    };
    of_variables.into_values().map(line).collect()
}

/// What sorts variables as the source has them, and tells one from another.
type Key = (Option<Line>, String, u64);

/// Which variable it is and what to call the place in it; none if it is none of the program's.
fn variable(finding: &Finding, access: u64, names: Option<&Symbols>) -> Option<(Key, String)> {
    let address = finding.address;
    if names.is_some_and(|names| names.is_of_linker(address)) {
        return None;
    }
    match names.and_then(|names| names.variable(address)) {
        Some(found) if found.is_of_library => None,
        // Functions of the C library read further than the string that they were given, but use nothing of it.
        Some(found) if access < found.address => None,
        Some(found) => {
            let place = Variable { offset: access - found.address, ..found.clone() };
            Some(((found.declared, found.name, found.address), place.to_string()))
        }
        None if finding.reader.in_library && finding.reader.before > 0 => None,
        None => Some(((None, String::new(), access), format!("the variable at {access:#x}"))),
    }
}

/// `in work (pi.c:31)`.
fn at(record: Record, names: Option<&Symbols>) -> String {
    let place = match (record.instruction, names) {
        (0, _) => return "in a library".to_owned(),
        (address, None) => format!("the function at {address:#x}"),
        // Behind a call is what comes after it, which may be another line.
        (address, Some(names)) => names.instruction(address - u64::from(record.in_library)).to_string(),
    };
    if record.in_library { format!("in a library called from {place}") } else { format!("in {place}") }
}

fn report(told: &[String]) -> Report {
    let what = match told.len() {
        1 => "a global variable that is not shared is written in one process and read in another".to_owned(),
        count => format!("{count} global variables that are not shared are written in one process and read in another"),
    };
    Report { code: Code::PrivateGlobal, place: Place::Launcher, what: listed(&what, told) }
}
