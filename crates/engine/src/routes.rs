//! How a message reaches another node.

use finespun_protocol::cashmere::variants::Way;

/// How a message reaches another node. What a node sends to itself is always handled inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Its handler runs inside the sender's, under the locks of both.
    Inside,
    /// Its handler runs when the sender holds no lock: two that send it to each other would block each other.
    Later,
    /// It leaves as a message.
    Away,
}

impl Route {
    /// The route of a message that goes by this way, and perhaps between copies of equal standing
    /// ([`is_between_equals`](finespun_protocol::page::Message::is_between_equals)).
    #[inline]
    #[must_use]
    pub const fn of(way: Way, between_equals: bool) -> Self {
        match way {
            Way::Message => Self::Away,
            Way::Direct if between_equals => Self::Later,
            Way::Direct => Self::Inside,
        }
    }
}
