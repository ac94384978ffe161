//! The choices beside the protocol: flags, the presets of `--strings`, and which of them mean nothing for a job.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use finespun_job::switches::{Barrier, Cores, Locks, Prefetch, Receive, Refresh, Rewrites, Server, Strings, Switches};

/// What the command line says of them; what it does not say is the preset's, or the default.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Mutexes stay at their manager in one queue, or move to who locks them [default: queue; strings-*: migratory]
    #[arg(long, env = "FINESPUN_LOCKS", value_parser = one_of(Locks::NAMES, Locks::named))]
    pub locks: Option<Locks>,
    /// Arrivals at the barrier of all are collected in each node, or sent one by one [default: summing]
    #[arg(long, env = "FINESPUN_BARRIER", value_parser = one_of(Barrier::NAMES, Barrier::named))]
    pub barrier: Option<Barrier>,
    /// Messages are handled by all who wait, or by the node's service process alone [default: concurrent]
    #[arg(long, env = "FINESPUN_SERVER", value_parser = one_of(Server::NAMES, Server::named))]
    pub server: Option<Server>,
    /// The service process sleeps in poll(2), or gets a signal for what arrives [default: poll]
    #[arg(long, env = "FINESPUN_RECEIVE", value_parser = one_of(Receive::NAMES, Receive::named))]
    pub receive: Option<Receive>,
    /// A node's threads run on all cores, or on one for each node [default: all]
    #[arg(long, env = "FINESPUN_CORES", value_parser = one_of(Cores::NAMES, Cores::named))]
    pub cores: Option<Cores>,
    /// A page written in one interval after the other stays writable, or each release takes that right [default: keep]
    #[arg(long, env = "FINESPUN_REWRITES", value_parser = one_of(Rewrites::NAMES, Rewrites::named))]
    pub rewrites: Option<Rewrites>,
    /// Pages are fetched when they are used, or ahead of it where a program reads one after the other [default: adaptive]
    #[arg(long, env = "FINESPUN_PREFETCH", value_parser = one_of(Prefetch::NAMES, Prefetch::named))]
    pub prefetch: Option<Prefetch>,
    /// An acquire closes pages that others have written, or fetches those anew that are read in each interval [default: adaptive]
    #[arg(long, env = "FINESPUN_REFRESH", value_parser = one_of(Refresh::NAMES, Refresh::named))]
    pub refresh: Option<Refresh>,
    /// A configuration of Strings' ablation: sets those above, and -p P to P nodes (S) or P threads (M to B); tcp only
    #[arg(long, value_name = "NAME", env = "FINESPUN_STRINGS", value_parser = one_of(Strings::NAMES, Strings::named))]
    pub strings: Option<Strings>,
}

fn one_of<T: Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
    named: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).map(move |name| named(&name).expect("only names that there are come here"))
}

impl Chosen {
    /// All choices of the job, given what its protocol has where nothing is said.
    pub fn over(&self, default: Switches) -> Switches {
        let preset = self.strings.map_or(default, Strings::switches);
        Switches {
            locks: self.locks.unwrap_or(preset.locks),
            barrier: self.barrier.unwrap_or(preset.barrier),
            server: self.server.unwrap_or(preset.server),
            receive: self.receive.unwrap_or(preset.receive),
            cores: self.cores.unwrap_or(preset.cores),
            rewrites: self.rewrites.unwrap_or(preset.rewrites),
            prefetch: self.prefetch.unwrap_or(preset.prefetch),
            refresh: self.refresh.unwrap_or(preset.refresh),
        }
    }

    /// Why a choice means nothing where nodes send no messages, as a sentence.
    pub fn check(&self, sends_messages: bool, which: &str) -> Result<(), String> {
        let about_messages = [
            self.strings.map(|strings| format!("--strings {}", strings.name())),
            self.server.map(|server| format!("--server {}", server.name())),
            self.receive.map(|receive| format!("--receive {}", receive.name())),
        ];
        match about_messages.into_iter().flatten().next() {
            Some(flag) if !sends_messages => Err(format!(
                "{flag} is about how messages are served, and {which} sends none: expected --transport tcp"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Barrier, Chosen, Locks, Receive, Strings, Switches};

    #[test]
    fn a_flag_wins_over_the_preset_and_the_preset_over_the_default() {
        let chosen = Chosen { strings: Some(Strings::C), receive: Some(Receive::Poll), ..Chosen::default() };
        let switches = chosen.over(Switches::DEFAULT);
        assert_eq!(switches, Switches { barrier: Barrier::Flat, locks: Locks::Migratory, ..Switches::DEFAULT });
        assert_eq!(Chosen::default().over(Switches::DEFAULT), Switches::DEFAULT);
    }

    #[test]
    fn what_is_about_messages_is_refused_where_there_are_none() {
        let chosen = Chosen { receive: Some(Receive::Signal), ..Chosen::default() };
        assert_eq!(chosen.check(true, "csm-2l over tcp"), Ok(()));
        assert!(chosen.check(false, "csm-2l over shm").is_err_and(|why| why.contains("--receive signal")));
        let locks = Chosen { locks: Some(Locks::Migratory), ..Chosen::default() };
        assert_eq!(locks.check(false, "csm-2l over shm"), Ok(()));
    }
}
