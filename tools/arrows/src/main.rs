//! Draws which file of a crate uses which, and fails on a circle or on an arrow that goes up.
//!
//! ```text
//!   finespun-arrows [--draw] [--circle CRATE=FILES ..] [CRATE-FOLDER ..]     without folders: every crate below crates/
//! ```
//!
//! An *arrow* goes from a file to the file that defines what the first one names. A re-export is no arrow by itself, and
//! tests have none. A *circle* is a set of files that reach each other. The *layers* of a crate are the groups of `mod`
//! lines in its `lib.rs`, told apart by empty lines, the uppermost first: an arrow may go to a group below, or stay.
//!
//! `--circle runtime=44` puts up with circles that have 44 files together in that crate, and no more.
#![forbid(unsafe_code)]

mod graph;
mod resolve;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use graph::Graph;
use source::Source;

/// What is wrong with a crate, one sentence each. So many files may stand in circles.
fn findings(name: &str, source: &Source, graph: &Graph, in_circles_max: usize) -> Vec<String> {
    let mut found = Vec::new();
    let circles = graph.circles();
    let is_new = circles.iter().map(Vec::len).sum::<usize>() > in_circles_max;
    for circle in circles.into_iter().filter(|_| is_new) {
        let ties =
            graph.ties(&circle).into_iter().map(|(from, to)| format!("{} -> {}", graph.name(from), graph.name(to)));
        found.push(format!("{name}: {} files form a circle: {}", circle.len(), ties.collect::<Vec<_>>().join(", ")));
    }
    for (from, to) in graph.arrows() {
        let (Some(above), Some(below)) = (source.layer_of(from), source.layer_of(to)) else { continue };
        if below < above {
            found.push(format!("{name}: {} uses {}, which stands in a layer above", graph.name(from), graph.name(to)));
        }
    }
    found
}

/// Every file with what it uses, the uppermost floor first.
fn draw(name: &str, graph: &Graph) {
    println!("{name}: {} files on {} floors, {} arrows", graph.len(), graph.floors(), graph.arrows().count());
    for floor in (0..graph.floors()).rev() {
        for file in graph.on_floor(floor) {
            let uses: BTreeSet<&str> = graph.uses(file).map(|to| graph.name(to)).collect();
            let uses = uses.into_iter().collect::<Vec<_>>().join(" ");
            println!("  {floor:2}  {:<28} {}{uses}", graph.name(file), if uses.is_empty() { "" } else { "-> " });
        }
    }
}

/// The crates below `crates/`, in order of their names.
fn all_crates() -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir("crates").map_err(|error| format!("crates: {error} (run this at the top of the project)"))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|folder| folder.join("src/lib.rs").exists() || folder.join("src/main.rs").exists());
    folders.sort();
    Ok(folders)
}

/// What the command line asks for.
#[derive(Default)]
struct Asked {
    draws: bool,
    in_circles_max: BTreeMap<String, usize>,
    folders: Vec<PathBuf>,
}

impl Asked {
    fn of(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--draw" => asked.draws = true,
                "--circle" => {
                    let given = arguments.next().unwrap_or_default();
                    let circle =
                        given.split_once('=').and_then(|(name, files)| Some((name.to_owned(), files.parse().ok()?)));
                    let (name, files) = circle.ok_or_else(|| format!("--circle CRATE=FILES, not `{given}`"))?;
                    asked.in_circles_max.insert(name, files);
                }
                folder => asked.folders.push(PathBuf::from(folder)),
            }
        }
        Ok(asked)
    }
}

fn run(asked: Asked) -> Result<bool, String> {
    let mut is_clean = true;
    for folder in if asked.folders.is_empty() { all_crates()? } else { asked.folders } {
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let source = Source::read(&root_of(&folder))?;
        let graph = resolve::graph(&source);
        if asked.draws {
            draw(&name, &graph);
        }
        let in_circles_max = asked.in_circles_max.get(&name).copied().unwrap_or(0);
        for finding in findings(&name, &source, &graph, in_circles_max) {
            is_clean = false;
            println!("{finding}");
        }
    }
    Ok(is_clean)
}

fn root_of(folder: &Path) -> PathBuf {
    let library = folder.join("src/lib.rs");
    if library.exists() { library } else { folder.join("src/main.rs") }
}

fn main() -> ExitCode {
    match Asked::of(std::env::args().skip(1)).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("finespun-arrows: {error}");
            ExitCode::from(2)
        }
    }
}
