//! What of the runtime can be chosen beside the protocol: how mutexes travel, how barriers are collected, who serves
//! messages and how it hears of them, which cores a node has, whether rewritten pages stay writable, whether pages are
//! fetched ahead, and whether an acquire fetches what is read again and again.
//!
//! All but the last three give the configurations in which Strings measured its design, one decision after the other
//! [Strings §3.7]: see [`Strings`].

use finespun_protocol::Family;
use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$of:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $kind { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl $kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            /// All names.
            pub const NAMES: &[&'static str] = &[$($name),*];
            /// What a user calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
            /// The one of this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.name() == name)
            }
        }
    };
}

choice! {
    /// How a mutex travels.
    Locks {
        /// It stays at its manager, which keeps the queue.
        Queue = "queue",
        /// It moves to whoever locks it and stays there; the queue is distributed [Strings §2.6].
        Migratory = "migratory",
    }
}
choice! {
    /// How arrivals at the barrier of all reach its manager.
    Barrier {
        /// Collected in each node first, then one message.
        Summing = "summing",
        /// One message for each arrival.
        Flat = "flat",
    }
}
choice! {
    /// Who handles the messages that come to a node.
    Server {
        /// Whoever waits, and the node's service process; several at once.
        Concurrent = "concurrent",
        /// The service process alone, one message after the other.
        Iterative = "iterative",
    }
}
choice! {
    /// How the service process hears of messages.
    Receive {
        /// It sleeps in poll(2) on its connections.
        Poll = "poll",
        /// The kernel sends it SIGIO, and the signal's handler receives.
        Signal = "signal",
    }
}
choice! {
    /// On which cores the threads of a node run.
    Cores {
        /// On all that the job may use.
        All = "all",
        /// On one for each node: what threads of user level could use.
        One = "one",
    }
}
choice! {
    /// How a store is noticed to a page that the view wrote before its last release, too.
    Rewrites {
        /// Not at all: the page stays writable, and the release compares it with its twin.
        Keep = "keep",
        /// By a fault, as any other: each release takes the right to write.
        Fault = "fault",
    }
}
choice! {
    /// Whether pages are fetched before they are used.
    Prefetch {
        /// Each when it is used.
        Off = "off",
        /// Where a program reads page after page, those that follow.
        Adaptive = "adaptive",
    }
}
choice! {
    /// What an acquire does with pages that others have written.
    Refresh {
        /// It closes them all; the next access faults.
        Off = "off",
        /// Those that the program reads in each interval it fetches anew, and leaves open.
        Adaptive = "adaptive",
    }
}
choice! {
    /// A configuration of [Strings §3.7]: each has one thing more than the one before.
    Strings {
        /// Single application thread: every processor is a process and a node of its own.
        S = "S",
        /// Multiple application threads in a node, on one core.
        M = "M",
        /// Kernel threads: on all cores.
        K = "K",
        /// Concurrent server.
        C = "C",
        /// Polled input.
        P = "P",
        /// Summing barrier.
        B = "B",
    }
}

/// All choices of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// See [`Locks`].
    pub locks: Locks,
    /// See [`Barrier`].
    pub barrier: Barrier,
    /// See [`Server`].
    pub server: Server,
    /// See [`Receive`].
    pub receive: Receive,
    /// See [`Cores`].
    pub cores: Cores,
    /// See [`Rewrites`].
    pub rewrites: Rewrites,
    /// See [`Prefetch`].
    pub prefetch: Prefetch,
    /// See [`Refresh`].
    pub refresh: Refresh,
}

impl Switches {
    /// What a job of these tables has when nothing else is said: for those of Strings, its own mutexes.
    #[must_use]
    pub const fn of(family: Family) -> Self {
        match family {
            Family::Cashmere | Family::Broadcasting | Family::Migrating | Family::Tmk => Self::DEFAULT,
            Family::StringsRc | Family::StringsSc => Self { locks: Locks::Migratory, ..Self::DEFAULT },
        }
    }

    /// What a job has when nothing else is said.
    pub const DEFAULT: Self = Self {
        locks: Locks::Queue,
        barrier: Barrier::Summing,
        server: Server::Concurrent,
        receive: Receive::Poll,
        cores: Cores::All,
        rewrites: Rewrites::Keep,
        prefetch: Prefetch::Adaptive,
        refresh: Refresh::Adaptive,
    };
}

impl Switches {
    /// Each by the name of its flag.
    #[must_use]
    pub const fn named(self) -> [(&'static str, &'static str); 8] {
        [
            ("locks", self.locks.name()),
            ("barrier", self.barrier.name()),
            ("server", self.server.name()),
            ("receive", self.receive.name()),
            ("cores", self.cores.name()),
            ("rewrites", self.rewrites.name()),
            ("prefetch", self.prefetch.name()),
            ("refresh", self.refresh.name()),
        ]
    }
}

impl Strings {
    /// What this configuration says of each.
    #[must_use]
    #[rustfmt::skip]
    pub const fn switches(self) -> Switches {
        use {Barrier::{Flat, Summing}, Cores::{All, One}, Receive::{Poll, Signal}, Server::{Concurrent, Iterative}};
        let (barrier, server, receive, cores) = match self {
            Self::S => (Flat,    Iterative,  Signal, All),
            Self::M => (Flat,    Iterative,  Signal, One),
            Self::K => (Flat,    Iterative,  Signal, All),
            Self::C => (Flat,    Concurrent, Signal, All),
            Self::P => (Flat,    Concurrent, Poll,   All),
            Self::B => (Summing, Concurrent, Poll,   All),
        };
        Switches { locks: Locks::Migratory, barrier, server, receive, cores, ..Switches::DEFAULT }
    }

    /// Is every processor a node of its own? Else those of a node are threads of one process.
    #[must_use]
    pub const fn is_one_level(self) -> bool {
        match self {
            Self::S => true,
            Self::M | Self::K | Self::C | Self::P | Self::B => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Locks, Strings, Switches};

    /// In how many of its choices one configuration differs from another, counting the level as one.
    fn differences(one: Strings, other: Strings) -> usize {
        let (a, b) = (one.switches(), other.switches());
        let differs = [
            one.is_one_level() != other.is_one_level(),
            a.locks != b.locks,
            a.barrier != b.barrier,
            a.server != b.server,
            a.receive != b.receive,
            a.cores != b.cores,
            a.prefetch != b.prefetch,
            a.refresh != b.refresh,
        ];
        differs.into_iter().filter(|differs| *differs).count()
    }

    #[test]
    fn each_configuration_differs_in_one_thing_from_the_one_before() {
        for pair in Strings::ALL.windows(2) {
            let [one, other] = pair else { unreachable!("windows of two") };
            // Threads of user level come with the threads themselves.
            let expected = if *one == Strings::S { 2 } else { 1 };
            assert_eq!(differences(*one, *other), expected, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn the_last_configuration_is_what_jobs_have_but_for_the_locks() {
        assert_eq!(Switches { locks: Locks::Queue, ..Strings::B.switches() }, Switches::DEFAULT);
    }

    #[test]
    fn names_lead_back_and_survive_the_job_description() {
        for &each in Strings::ALL {
            assert_eq!(Strings::named(each.name()), Some(each));
            let switches = each.switches();
            let text = serde_json::to_string(&switches).expect("plain data");
            assert_eq!(serde_json::from_str::<Switches>(&text).expect("its own"), switches);
        }
        assert_eq!(Strings::named("s"), None);
    }
}
