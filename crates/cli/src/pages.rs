//! `finespun pages FOLDER FSPCC`: the manual pages and the shells' completions, made from the command line's own description, and
//! fspcc(1) from what `fspcc --help` prints. `make` calls it, so users do not see it in the help.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, ValueHint};
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};
use finespun_errors::{Code, Place, Report};
use finespun_job::protocols;

use crate::options::Options;

/// The name of this subcommand, which the pages leave out.
const NAME: &str = "pages";
const COMMAND: &str = "finespun";
/// Each shell, and where it looks for completions below a `share` folder.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes all pages below `folder`, which is laid out as `/usr/share` is.
pub fn write(folder: &Path, fspcc: &Path) -> Result<i32, Report> {
    let help = help_of(fspcc).map_err(|error| unable(fspcc, &error))?;
    write_all(folder, &help).map_err(|error| unable(folder, &error))?;
    Ok(0)
}

fn unable(path: &Path, error: &io::Error) -> Report {
    Report { code: Code::File, place: Place::Launcher, what: format!("{}: {error}", path.display()) }
}

fn help_of(fspcc: &Path) -> io::Result<String> {
    let output = Command::new(fspcc).arg("--help").output()?;
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

fn write_all(folder: &Path, help: &str) -> io::Result<()> {
    let manual = folder.join("man/man1");
    fs::create_dir_all(&manual)?;
    clap_mangen::generate_to(described(), &manual)?;
    fs::write(manual.join("fspcc.1"), page_of_fspcc(help))?;
    fs::write(manual.join("fspc++.1"), ".so man1/fspcc.1\n")?;
    for (shell, place) in SHELLS {
        let place = folder.join(place);
        fs::create_dir_all(&place)?;
        clap_complete::generate_to(shell, &mut described(), COMMAND, &place)?;
    }
    // Shells that load by the name of the command look for it without an ending.
    let bash = folder.join(SHELLS[0].1);
    fs::rename(bash.join(format!("{COMMAND}.bash")), bash.join(COMMAND))
}

/// The command line as users know it. The names of the protocols are listed, so that shells can complete them.
fn described() -> clap::Command {
    let options = Options::command();
    let is_for_users = |each: &&clap::Command| each.get_name() != NAME;
    let subcommands = options.get_subcommands().filter(is_for_users).cloned();
    let kept = clap::Command::new(COMMAND)
        .version(env!("CARGO_PKG_VERSION"))
        .about(options.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .subcommands(subcommands);
    let names = [protocols::AUTO].into_iter().chain(protocols::PROTOCOLS.iter().map(|each| each.name));
    let names = PossibleValuesParser::new(names.chain(["help", "list"]));
    kept.mut_subcommand("run", |run| {
        run.mut_arg("protocol", |protocol| protocol.value_parser(names))
            .mut_arg("command", |command| command.value_hint(ValueHint::CommandWithArguments))
    })
}

/// A manual page with the flags and paragraphs of the driver's help.
fn page_of_fspcc(help: &str) -> String {
    let mut page = Roff::new();
    page.control("TH", ["fspcc", "1", "", concat!("finespun ", env!("CARGO_PKG_VERSION")), ""]);
    page.control("SH", ["NAME"]);
    page.text([roman("fspcc, fspc++ - the C and C++ compiler, with what a program of Finespun needs")]);
    let parts = parts_of(help);
    let mut section = "";
    for part in &parts {
        let wanted = part.section();
        if section != wanted {
            page.control("SH", [wanted]);
            section = wanted;
        }
        match part {
            Part::Usage(text) | Part::Paragraph(text) => {
                page.control("PP", []);
                page.text([roman(text.as_str())]);
            }
            Part::Flag(flag, meaning) => {
                page.control("TP", []);
                page.text([bold(flag.as_str())]);
                page.text([roman(meaning.as_str())]);
            }
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("finespun"), roman("(1)")]);
    page.render()
}

/// What the driver's help is made of.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// The first line.
    Usage(String),
    /// A flag, and what it does.
    Flag(String, String),
    /// Lines that begin at the margin.
    Paragraph(String),
}

impl Part {
    fn section(&self) -> &'static str {
        match self {
            Self::Usage(_) => "SYNOPSIS",
            Self::Flag(..) => "OPTIONS",
            Self::Paragraph(_) => "DESCRIPTION",
        }
    }
}

/// Takes the help apart. A flag stands behind two spaces and its meaning behind two more; a line without either goes on with the one before.
fn parts_of(help: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut is_new = true;
    for line in help.lines() {
        let text = line.trim();
        if text.is_empty() {
            is_new = true;
            continue;
        }
        let flag = line.strip_prefix("  ").filter(|rest| rest.starts_with('-'));
        match (flag, parts.last_mut()) {
            (Some(flag), _) => {
                let (flag, meaning) = flag.split_once("  ").unwrap_or((flag, ""));
                parts.push(Part::Flag(flag.to_owned(), meaning.trim().to_owned()));
            }
            (None, None) => parts.push(Part::Usage(one_spaced(text))),
            (None, Some(Part::Flag(_, before) | Part::Paragraph(before) | Part::Usage(before))) if !is_new => {
                before.push(' ');
                before.push_str(text);
            }
            (None, Some(_)) => parts.push(Part::Paragraph(text.to_owned())),
        }
        is_new = false;
    }
    parts
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Part, page_of_fspcc, parts_of, write_all};

    const HELP: &str = "fspcc [FLAGS] FILES      (fspc++ for C++)\n\n  --one   does this\n  --two   does that,\n          and more\n\nGive both\nalways.\n";

    #[test]
    fn the_drivers_help_is_taken_apart() {
        let flag = |flag: &str, meaning: &str| Part::Flag(flag.to_owned(), meaning.to_owned());
        let expected = [
            Part::Usage("fspcc [FLAGS] FILES (fspc++ for C++)".to_owned()),
            flag("--one", "does this"),
            flag("--two", "does that, and more"),
            Part::Paragraph("Give both always.".to_owned()),
        ];
        assert_eq!(parts_of(HELP), expected);
    }

    #[test]
    fn the_drivers_page_has_a_section_for_each_kind_of_part() {
        let page = page_of_fspcc(HELP);
        let sections = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect::<Vec<_>>();
        assert_eq!(sections, ["NAME", "SYNOPSIS", "OPTIONS", "DESCRIPTION", "\"SEE ALSO\""], "{page}");
        assert!(page.contains("does that, and more"), "{page}");
    }

    #[test]
    fn each_subcommand_has_a_page_and_each_shell_knows_flags_and_protocols() {
        let folder = tempfile::tempdir().expect("a folder");
        write_all(folder.path(), HELP).expect("writable");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
        for name in ["finespun", "finespun-run", "finespun-check", "finespun-report", "fspcc", "fspc++"] {
            assert!(!read(&format!("man/man1/{name}.1")).is_empty());
        }
        assert!(!folder.path().join("man/man1/finespun-pages.1").exists(), "only make calls it");
        assert!(read("man/man1/finespun-run.1").contains("FINESPUN_NODES"));
        for name in ["bash-completion/completions/finespun", "zsh/site-functions/_finespun"] {
            let text = read(name);
            assert!(text.contains("--transport") && text.contains("csm-2l") && text.contains("__report"), "{name}");
            assert!(!text.contains("__pages"), "{name}: only make calls it");
        }
        let fish = read("fish/vendor_completions.d/finespun.fish");
        assert!(fish.contains("-l transport") && fish.contains("csm-2l"));
    }
}
