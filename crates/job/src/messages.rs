//! How messages between nodes are carried: `finespun run --messages HOW`. For tests: a job is as right by each way, and slower by all but
//! the first.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a job was asked for. By default sockets carry its messages, and nothing delays them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Memory that all nodes map carries them, no sockets.
    pub loopback: Option<Loopback>,
    /// They are delayed, and those of different pairs of nodes overtake each other, by this seed.
    pub delay: Option<u64>,
}

/// The descriptors of a loopback, the same in every process of the job; none before the launcher has made them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    /// The memory of its queues.
    pub memory: i32,
    /// What wakes each node, by node.
    pub doorbells: Vec<i32>,
}

impl Messages {
    /// Is this what a job has if nothing is said?
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Messages {
    type Err = String;

    /// `sockets` or `loopback`, and behind a comma `delay=SEED`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected sockets or loopback, and behind a comma delay=SEED, not \"{text}\"");
        let (carrier, delay) = text.split_once(',').map_or((text, None), |(carrier, delay)| (carrier, Some(delay)));
        let loopback = match carrier {
            "sockets" => None,
            "loopback" => Some(Loopback::default()),
            _ => return Err(expected()),
        };
        let seed = |delay: &str| delay.strip_prefix("delay=")?.parse().ok();
        let delay = delay.map(|delay| seed(delay).ok_or_else(expected)).transpose()?;
        Ok(Self { loopback, delay })
    }
}

#[cfg(test)]
mod tests {
    use super::{Loopback, Messages};

    #[test]
    fn carrier_and_delay_are_chosen_apart() {
        let loopback = Some(Loopback::default());
        for (text, expected) in [
            ("sockets", Messages::default()),
            ("loopback", Messages { loopback: loopback.clone(), delay: None }),
            ("sockets,delay=7", Messages { loopback: None, delay: Some(7) }),
            ("loopback,delay=0", Messages { loopback, delay: Some(0) }),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for wrong in ["", "socket", "delay=7", "sockets,7", "sockets,delay=", "sockets,delay=-1", "loopback,"] {
            assert!(wrong.parse::<Messages>().is_err_and(|why| why.contains("expected")), "{wrong}");
        }
    }
}
