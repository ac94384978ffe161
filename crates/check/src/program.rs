//! Programs for small worlds, and the text they are written in.
//!
//! ```text
//! nodes 2 views 1 units 1         # threads 1, unless said
//! home u0 n1                      # the address fixes the home; unless said: first touch
//! n0.v0: lock a; store u0.0 = 1; unlock a
//! n1.v0: { lock a; x = load u0.0; unlock a | }   # one of these, the second is nothing
//! allow x=0                       # with such lines: the outcomes, all of them and no other
//! allow x=1 @ update sequential   # an outcome under these protocols only; the others must not reach it
//! ```
//!
//! A store without a value stores the next number. `racy` says that loads may see older values; without it each
//! load must return the last store before it, because the program has no data race. `keeps` says that a release may leave a view its
//! right to write a unit, or not: both are explored. `guesses 2` says that a view may twice present a read fault that has not happened, at
//! any time; `guesses 2 refusing` that it does so only if nothing is taken from anybody by it; `guesses 2 writing` that it is a write fault.
//!
//! `n0.v0 handler: store u0.1` says what a signal handler of that processor does. `signals 2` says how many signals may come in all. A signal
//! comes while its processor waits for a lock, a flag or the barrier. A handler has loads and stores only.

use std::collections::BTreeSet;
use std::fmt;

use finespun_types::NodeId;

/// Words of a unit's model page.
pub const WORDS: usize = 3;

/// The most units of a world.
pub const UNITS_MAX: usize = 4;

/// How many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Views of each node.
    pub views: usize,
    /// Threads of each view.
    pub threads: usize,
    /// Units.
    pub units: usize,
}

impl Shape {
    /// How many processors there are.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.nodes * self.views * self.threads
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.nodes, self.views, self.units)?;
        if self.threads > 1 { write!(f, " ({} threads a view)", self.threads) } else { Ok(()) }
    }
}

/// One word of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The unit.
    pub unit: usize,
    /// The word in it.
    pub word: usize,
}

/// What a processor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Loads a word, and may keep it for the outcome.
    Load(Word, Option<usize>),
    /// Stores a value, or the next number.
    Store(Word, Option<u8>),
    /// Waits for a lock; an acquire.
    Lock(usize),
    /// A release.
    Unlock(usize),
    /// A release; waits for all; an acquire.
    Barrier,
    /// A release; from then on the flag is seen.
    Set(usize),
    /// Waits for a flag; an acquire.
    Await(usize),
    /// Goes on at any of these places.
    Either(Vec<usize>),
}

/// A program: one list of operations for each processor.
#[derive(Clone, Debug)]
pub struct Program {
    /// Of what world.
    pub shape: Shape,
    /// By unit: the fixed home; `None`: first touch.
    pub homes: Vec<Option<NodeId>>,
    /// By processor.
    pub scripts: Vec<Vec<Op>>,
    /// The registers, in order of appearance.
    pub registers: Vec<String>,
    /// The outcomes allowed under every protocol: values by register; empty: not asked.
    pub allowed: BTreeSet<Vec<u8>>,
    /// The outcomes allowed under protocols of this kind only.
    pub allowed_only: BTreeSet<(String, Vec<u8>)>,
    /// The program has data races: any load may be old.
    pub racy: bool,
    /// A release may leave a view the right to write, each unit or not, where the protocol knows how.
    pub keeps: bool,
    /// So many faults may be presented that have not happened, where the protocol allows it, and which of them.
    pub guesses: (u8, Guesses),
    /// By processor: what its signal handler does; empty: it has none.
    pub handlers: Vec<Vec<Op>>,
    /// So many signals may come.
    pub signals: u8,
}

/// Which units a view may guess that it will use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guesses {
    /// Any: to guess badly may cost time, nothing else.
    Any,
    /// Those that neither an owner loses by it nor a home is chosen by it, as far as the view may look.
    Refusing,
    /// Any, to write: as a store of what is there would.
    Writing,
}

impl Program {
    /// No operations yet.
    #[must_use]
    pub fn empty(shape: Shape) -> Self {
        Self {
            shape,
            homes: vec![None; shape.units],
            scripts: vec![Vec::new(); shape.processors()],
            registers: Vec::new(),
            allowed: BTreeSet::new(),
            allowed_only: BTreeSet::new(),
            racy: false,
            keeps: false,
            guesses: (0, Guesses::Any),
            handlers: vec![Vec::new(); shape.processors()],
            signals: 0,
        }
    }

    /// Reads a program.
    ///
    /// # Errors
    /// The line that cannot be read, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut program: Option<Self> = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let read = match &mut program {
                None => Shape::parse(line).map(|shape| program = Some(Self::empty(shape))),
                Some(program) => program.line(line),
            };
            read.map_err(|why| format!("line {}: {why}: {line}", number + 1))?;
        }
        program.ok_or_else(|| "no line `nodes N views V units U`".into())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["racy"] => self.racy = true,
            ["keeps"] => self.keeps = true,
            ["signals", count] => self.signals = count.parse().map_err(|_| format!("not a number: {count}"))?,
            ["guesses", count, which @ ..] => {
                let count = count.parse().map_err(|_| format!("not a number: {count}"))?;
                self.guesses = match which {
                    [] => (count, Guesses::Any),
                    ["refusing"] => (count, Guesses::Refusing),
                    ["writing"] => (count, Guesses::Writing),
                    _ => return Err("expected `guesses 2`, `guesses 2 refusing` or `guesses 2 writing`".into()),
                };
            }
            ["home", unit, node] => {
                let unit = index(unit, "u", self.shape.units)?;
                self.homes[unit] = Some(NodeId::of(index(node, "n", self.shape.nodes)?));
            }
            ["allow", values @ ..] => match values.split(|word| *word == "@").collect::<Vec<_>>().as_slice() {
                [values] => _ = self.allowed.insert(self.outcome(values)?),
                [values, kinds] => {
                    let outcome = self.outcome(values)?;
                    let only = kinds.iter().map(|kind| ((*kind).to_owned(), outcome.clone()));
                    self.allowed_only.extend(only);
                }
                _ => return Err("one `@` at most".into()),
            },
            _ => {
                let (who, script) = line.split_once(':').ok_or("expected `n0.v0: operations`")?;
                if let Some(who) = who.strip_suffix(" handler") {
                    let processor = self.processor(who)?;
                    return self.handler(processor, script);
                }
                let processor = self.processor(who)?;
                let mut ops = std::mem::take(&mut self.scripts[processor]);
                let rest = self.block(script, &mut ops)?;
                if !rest.is_empty() {
                    return Err(format!("unmatched `{rest}`"));
                }
                self.scripts[processor] = ops;
            }
        }
        Ok(())
    }

    fn handler(&mut self, processor: usize, script: &str) -> Result<(), String> {
        let mut ops = Vec::new();
        let rest = self.block(script, &mut ops)?;
        if !rest.is_empty() || !ops.iter().all(|op| matches!(op, Op::Load(..) | Op::Store(..))) {
            return Err("a handler has loads and stores only".into());
        }
        self.handlers[processor] = ops;
        Ok(())
    }

    fn processor(&self, who: &str) -> Result<usize, String> {
        let mut parts = who.trim().split('.');
        let mut part = |prefix, bound| parts.next().map_or(Ok(0), |part| index(part, prefix, bound));
        let shape = self.shape;
        let (node, view, thread) = (part("n", shape.nodes)?, part("v", shape.views)?, part("t", shape.threads)?);
        Ok((node * shape.views + view) * shape.threads + thread)
    }

    fn outcome(&self, values: &[&str]) -> Result<Vec<u8>, String> {
        let value_of = |register: &String| {
            let found = values.iter().find_map(|value| value.split_once('=').filter(|(name, _)| name == register));
            let (_, value) = found.ok_or(format!("no value for {register}"))?;
            value.parse().map_err(|_| format!("not a number: {value}"))
        };
        self.registers.iter().map(value_of).collect()
    }

    /// The outcomes allowed under a kind of protocol.
    #[must_use]
    pub fn allowed_under(&self, kind: &str) -> BTreeSet<Vec<u8>> {
        let only = self.allowed_only.iter().filter(|(of, _)| of == kind).map(|(_, outcome)| outcome.clone());
        self.allowed.iter().cloned().chain(only).collect()
    }

    /// An outcome as the file would list it.
    #[must_use]
    pub fn outcome_text(&self, outcome: &[u8]) -> String {
        let values = self.registers.iter().zip(outcome).map(|(register, value)| format!("{register}={value}"));
        values.collect::<Vec<_>>().join(" ")
    }

    /// Reads operations up to `|`, `}` or the end; returns what is left, from there.
    fn block<'a>(&mut self, mut text: &'a str, ops: &mut Vec<Op>) -> Result<&'a str, String> {
        loop {
            text = text.trim_start_matches([' ', ';']);
            if text.is_empty() || text.starts_with(['|', '}']) {
                return Ok(text);
            }
            if let Some(inside) = text.strip_prefix('{') {
                text = self.choice(inside, ops)?;
            } else {
                let end = text.find([';', '|', '}', '{']).unwrap_or(text.len());
                let op = self.op(text[..end].trim())?;
                ops.push(op);
                text = &text[end..];
            }
        }
    }

    /// `{ this | or that }`: a branch to each; each goes on behind all of them.
    fn choice<'a>(&mut self, mut text: &'a str, ops: &mut Vec<Op>) -> Result<&'a str, String> {
        let branch = ops.len();
        ops.push(Op::Either(Vec::new()));
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        loop {
            starts.push(ops.len());
            text = self.block(text, ops)?;
            ends.push(ops.len());
            ops.push(Op::Either(Vec::new()));
            if let Some(rest) = text.strip_prefix('}') {
                text = rest;
                break;
            }
            text = text.strip_prefix('|').ok_or("a `{` without its `}`")?;
        }
        let behind = ops.len();
        ops[branch] = Op::Either(starts);
        for end in ends {
            ops[end] = Op::Either(vec![behind]);
        }
        Ok(text)
    }

    fn op(&mut self, text: &str) -> Result<Op, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words.as_slice() {
            ["load", word] => Op::Load(self.word(word)?, None),
            [register, "=", "load", word] => Op::Load(self.word(word)?, Some(self.register(register))),
            ["store", word] => Op::Store(self.word(word)?, None),
            ["store", word, "=", value] => {
                Op::Store(self.word(word)?, Some(value.parse().map_err(|_| "not a number")?))
            }
            ["lock", lock] => Op::Lock(letter(lock)?),
            ["unlock", lock] => Op::Unlock(letter(lock)?),
            ["barrier"] => Op::Barrier,
            ["set", flag] => Op::Set(letter(flag)?),
            ["await", flag] => Op::Await(letter(flag)?),
            _ => return Err(format!("no such operation: `{text}`")),
        })
    }

    fn word(&self, text: &str) -> Result<Word, String> {
        let (unit, word) = text.split_once('.').ok_or("expected u0.0")?;
        Ok(Word { unit: index(unit, "u", self.shape.units)?, word: index(word, "", WORDS)? })
    }

    fn register(&mut self, name: &str) -> usize {
        self.registers.iter().position(|register| register == name).unwrap_or_else(|| {
            self.registers.push(name.into());
            self.registers.len() - 1
        })
    }
}

impl Shape {
    fn parse(line: &str) -> Result<Self, String> {
        let mut shape = Self { nodes: 1, views: 1, threads: 1, units: 1 };
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            let [name, count] = pair else { return Err("expected pairs of a name and a number".into()) };
            let count = count.parse().map_err(|_| format!("not a number: {count}"))?;
            match *name {
                "nodes" => shape.nodes = count,
                "views" => shape.views = count,
                "threads" => shape.threads = count,
                "units" if count <= UNITS_MAX => shape.units = count,
                _ => return Err(format!("expected nodes, views, threads or units, not `{name} {count}`")),
            }
        }
        Ok(shape)
    }
}

fn index(text: &str, prefix: &str, bound: usize) -> Result<usize, String> {
    let number = text.trim().strip_prefix(prefix).and_then(|rest| rest.parse().ok());
    number
        .filter(|&number| number < bound)
        .ok_or_else(|| format!("expected {prefix}0 to {prefix}{}, not {text}", bound - 1))
}

fn letter(name: &str) -> Result<usize, String> {
    match name.as_bytes() {
        [letter @ b'a'..=b'd'] => Ok(usize::from(letter - b'a')),
        _ => Err(format!("locks and flags are named a to d, not {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_goes_on_behind_all_its_branches() {
        let text = "nodes 1 views 1 units 1\nn0: { load u0.0 | } ; store u0.1 = 3";
        let program = Program::parse(text).unwrap();
        let load = Op::Load(Word { unit: 0, word: 0 }, None);
        let store = Op::Store(Word { unit: 0, word: 1 }, Some(3));
        let either = |places: &[usize]| Op::Either(places.to_vec());
        assert_eq!(program.scripts[0], [either(&[1, 3]), load, either(&[4]), either(&[4]), store]);
    }

    #[test]
    fn a_program_says_how_many_guesses_there_are_and_which() {
        let guesses = |line: &str| Program::parse(&format!("nodes 1 views 1 units 1\n{line}")).map(|it| it.guesses);
        assert_eq!(guesses(""), Ok((0, Guesses::Any)));
        assert_eq!(guesses("guesses 2"), Ok((2, Guesses::Any)));
        assert_eq!(guesses("guesses 1 refusing"), Ok((1, Guesses::Refusing)));
        assert_eq!(guesses("guesses 1 writing"), Ok((1, Guesses::Writing)));
        assert!(guesses("guesses 1 wildly").unwrap_err().contains("expected `guesses 2`, `guesses 2 refusing` or"));
    }

    #[test]
    fn a_program_says_what_its_handlers_do_and_how_many_signals_come() {
        let text = "nodes 1 views 1 units 1\nsignals 2\nn0.v0 handler: store u0.1\nn0: barrier";
        let program = Program::parse(text).unwrap();
        assert_eq!((program.signals, program.scripts[0].as_slice()), (2, [Op::Barrier].as_slice()));
        assert_eq!(program.handlers[0], [Op::Store(Word { unit: 0, word: 1 }, None)]);
        let locks = Program::parse("nodes 1 views 1 units 1\nn0 handler: lock a").unwrap_err();
        assert_eq!(locks, "line 2: a handler has loads and stores only: n0 handler: lock a");
    }

    #[test]
    fn a_bad_line_is_named() {
        let why = Program::parse("nodes 1 views 1 units 1\nn0: jump").unwrap_err();
        assert_eq!(why, "line 2: no such operation: `jump`: n0: jump");
        assert!(Program::parse("nodes 1 views 1 units 1\nn1: load u0.0").unwrap_err().contains("n0 to n0"));
    }
}
