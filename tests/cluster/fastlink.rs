//! A real TreadMarks program: the parallel ILINK of Debian's FASTLINK, with MLINK and LINKMAP, which `scripts/fastlink` gets
//! and builds. Each run is compared with the sequential program and with the same parallel program on memory that the
//! machine itself shares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::support::{Job, offers_userfaultfd, protocols, root, succeed};
use crate::tmk::every_way;

/// The exit code of `scripts/fastlink` when the package cannot be had.
const CANNOT_BE_HAD: i32 = 77;

/// Where it is built, or `None` and a message, which `make test` repeats at its end.
fn fastlink() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let get = || {
        let output = Command::new(root().join("scripts/fastlink")).output().expect("the script starts");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let note = root().join("build/tests/fastlink.skipped");
        let _ = fs::remove_file(&note); // of an earlier run, if there was one
        if output.status.code() == Some(CANNOT_BE_HAD) {
            println!("not run: {err}");
            fs::create_dir_all(root().join("build/tests")).expect("writable");
            fs::write(note, err.as_bytes()).expect("writable");
            return None;
        }
        assert!(output.status.success(), "{err}");
        Some(PathBuf::from(out.trim_end()))
    };
    BUILT.get_or_init(get).as_deref()
}

/// A study: pedigrees, what is known of their members, and what a program is to find out.
struct Study {
    folder: TempDir,
}

impl Study {
    /// The package's own, as its tests run MLINK and LINKMAP.
    fn of_the_package(fastlink: &Path) -> Self {
        let study = Self { folder: TempDir::new().expect("a folder") };
        for name in ["pedfile.dat", "datafile.dat"] {
            fs::copy(fastlink.join("data").join(name), study.folder.path().join(name)).expect("it is there");
        }
        study.prepare(fastlink)
    }

    /// The same for ILINK: the last line says what to do, and is another for each program.
    fn of_the_package_for_ilink(fastlink: &Path) -> Self {
        let study = Self::of_the_package(fastlink);
        let path = study.folder.path().join("datafile.dat");
        let text = fs::read_to_string(&path).expect("text");
        let (kept, _) = text.trim_end().rsplit_once('\n').expect("several lines");
        fs::write(&path, format!("{kept}\n0\n1 1\n")).expect("writable");
        study.prepare(fastlink)
    }

    /// A larger one, made up.
    fn made_up(fastlink: &Path, families: u32, alleles: u32) -> Self {
        let study = Self { folder: TempDir::new().expect("a folder") };
        let script = root().join("scripts/pedigree");
        succeed(Command::new(script).arg(study.folder.path()).args([families.to_string(), alleles.to_string()]));
        study.prepare(fastlink)
    }

    /// FASTLINK's first step.
    fn prepare(self, fastlink: &Path) -> Self {
        succeed(Command::new(fastlink.join("seq/unknown")).current_dir(self.folder.path()));
        self
    }

    /// For a run of its own, since results have fixed names.
    fn copy(&self) -> TempDir {
        let copy = TempDir::new().expect("a folder");
        for file in fs::read_dir(self.folder.path()).expect("readable").flatten() {
            fs::copy(file.path(), copy.path().join(file.file_name())).expect("readable");
        }
        copy
    }
}

/// What a run has written.
#[derive(PartialEq, Eq, Debug)]
struct Results {
    /// The course of the search, or the table of likelihoods.
    outfile: String,
    /// For programs that read on.
    stream: String,
    /// ILINK's: what it has found.
    found: String,
}

impl Results {
    fn of(folder: &Path) -> Self {
        let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let results = Self { outfile: read("outfile.dat"), stream: read("stream.dat"), found: read("final.dat") };
        assert!(results.outfile.len() > 100 && results.stream.len() > 100, "{results:?}");
        results
    }

    fn of_sequential(fastlink: &Path, program: &str, study: &Study) -> Self {
        let folder = study.copy();
        succeed(Command::new(fastlink.join("seq").join(program)).current_dir(folder.path()));
        Self::of(folder.path())
    }

    /// On memory that the machine shares, with as many processes.
    fn of_reference(fastlink: &Path, program: &str, study: &Study, processes: u64) -> Self {
        let folder = study.copy();
        let mut command = Command::new(fastlink.join("ref").join(program));
        command.arg("--").env("TMK_REFERENCE_PROCESSES", processes.to_string());
        succeed(command.current_dir(folder.path()));
        Self::of(folder.path())
    }

    /// The same but for what the parallel program counts in another way: how often it has computed the likelihood. The
    /// stream also has the gradient of the last evaluation, which need not be the sequential program's last.
    fn assert_as_sequential(&self, sequential: &Self, line: &str) {
        let without_count = |found: &str| {
            let is_result = |line: &&str| !line.starts_with("NUMBER OF FUNCTION EVALUATIONS");
            found.lines().filter(is_result).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(self.outfile, sequential.outfile, "{line}");
        assert_eq!(without_count(&self.found), without_count(&sequential.found), "{line}");
    }
}

fn processes(way: &str) -> u64 {
    let after = |flag: &str| {
        let mut words = way.split_whitespace().skip_while(|word| *word != flag).skip(1);
        words.next().map_or(1, |number| number.parse::<u64>().expect("a number"))
    };
    after("-n") * after("-p")
}

/// Runs it in each of these ways, and compares.
fn compare(fastlink: &Path, program: &str, study: &Study, ways: &[String]) {
    let sequential = Results::of_sequential(fastlink, program, study);
    let references = [1, 2, 3, 4].map(|processes| Results::of_reference(fastlink, program, study, processes));
    for way in ways {
        let folder = study.copy();
        // The job runs in a folder of the harness's: the shell goes to where the study is.
        let shell = folder.path().join("run");
        let line =
            format!("cd {} && exec {} --\n", folder.path().display(), fastlink.join("par").join(program).display());
        fs::write(&shell, line).expect("writable");
        let done = Job::new(&format!("--quiet {way}"), Path::new("/bin/sh"), &shell.display().to_string()).run();
        done.assert_success();
        assert_eq!(done.stderr, "", "{done}");
        let results = Results::of(folder.path());
        let reference = &references[processes(way) as usize - 1];
        assert_eq!(&results, reference, "{program} {way}: not as on shared memory\n{done}");
        results.assert_as_sequential(&sequential, &done.line);
    }
}

#[test]
fn ilink_gives_its_sequential_results_on_the_packages_data_in_every_way() {
    let Some(fastlink) = fastlink() else { return };
    let study = Study::of_the_package_for_ilink(fastlink);
    compare(fastlink, "ilink", &study, &every_way());
}

/// Every protocol over every transport, on 2 nodes or on 4, with one fault mechanism or the other.
#[test]
fn ilink_gives_its_sequential_results_on_a_larger_pedigree_under_every_protocol() {
    let Some(fastlink) = fastlink() else { return };
    let study = Study::made_up(fastlink, 2, 3);
    let first = if offers_userfaultfd() { "uffd" } else { "mprotect" };
    let ways = protocols().into_iter().flat_map(|protocol| {
        let of = |(transport, (nodes, faults)): (&str, (u32, &str))| {
            format!("-n {nodes} --protocol {} --transport {transport} --faults {faults}", protocol.name)
        };
        let choices = [(2, "mprotect"), (4, first)];
        let both = protocol.transports.iter().flat_map(|transport| choices.map(|choice| of((transport, choice))));
        both.collect::<Vec<_>>()
    });
    compare(fastlink, "ilink", &study, &ways.collect::<Vec<_>>());
}

#[test]
fn ilink_gives_its_sequential_results_on_four_larger_pedigrees() {
    let Some(fastlink) = fastlink() else { return };
    let study = Study::made_up(fastlink, 4, 3);
    let ways = ["-n 1", "-n 3", "-n 2 -p 2", "-n 2 --transport tcp"].map(str::to_owned);
    compare(fastlink, "ilink", &study, &ways);
}

#[test]
fn mlink_and_linkmap_give_their_sequential_results_on_the_packages_data() {
    let Some(fastlink) = fastlink() else { return };
    let study = Study::of_the_package(fastlink);
    let ways = every_way().into_iter().filter(|way| way.contains(" csm-2l ")).collect::<Vec<_>>();
    assert!(!ways.is_empty());
    for program in ["mlink", "linkmap"] {
        compare(fastlink, program, &study, &ways);
    }
}
