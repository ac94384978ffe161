//! Strings' two protocols, live.

use finespun_protocol::Family;
use finespun_protocol::strings::invalidate::{self, StringsSc};
use finespun_protocol::strings::update::{self, StringsRc};
use finespun_types::{Counter, NodeId};

use super::Live;

impl Live for StringsRc {
    const FAMILY: Family = Family::StringsRc;

    fn words(msg: update::Msg) -> (u8, u64) {
        use update::Msg::{AskHome, Fetch, Flush, FlushAck, HomeIs, NotAlone, Page, Update, UpdateAck};
        match msg {
            AskHome => (1, 0),
            HomeIs(home) => (2, u64::from(home.0)),
            Fetch => (3, 0),
            Page { alone } => (4, u64::from(alone)),
            Flush => (5, 0),
            FlushAck { updates } => (6, u64::from(updates)),
            Update { releaser } => (7, u64::from(releaser.0)),
            UpdateAck => (8, 0),
            NotAlone => (9, 0),
        }
    }

    fn msg(number: u8, word: u64) -> Option<update::Msg> {
        use update::Msg::{AskHome, Fetch, Flush, FlushAck, HomeIs, NotAlone, Page, Update, UpdateAck};
        let byte = u8::try_from(word);
        Some(match number {
            1 => AskHome,
            2 => HomeIs(NodeId(byte.ok()?)),
            3 => Fetch,
            4 => Page { alone: word != 0 },
            5 => Flush,
            6 => FlushAck { updates: byte.ok()? },
            7 => Update { releaser: NodeId(byte.ok()?) },
            8 => UpdateAck,
            9 => NotAlone,
            _ => return None,
        })
    }

    fn counter(msg: update::Msg) -> Option<Counter> {
        use update::Msg::{AskHome, Fetch, Flush, FlushAck, HomeIs, NotAlone, Page, Update, UpdateAck};
        match msg {
            Update { .. } => Some(Counter::Updates),
            AskHome | HomeIs(_) | Fetch | Page { .. } | NotAlone | Flush | FlushAck { .. } | UpdateAck => None,
        }
    }
}

impl Live for StringsSc {
    const FAMILY: Family = Family::StringsSc;

    fn words(msg: invalidate::Msg) -> (u8, u64) {
        use invalidate::Msg::{AskHome, Fetch, Grant, HomeIs, Invalidate, InvalidateAck, Recall, RecallReply};
        match msg {
            AskHome => (1, 0),
            HomeIs(home) => (2, u64::from(home.0)),
            Fetch { write } => (3, u64::from(write)),
            Grant { write, page } => (4, u64::from(write) | u64::from(page) << 1),
            Invalidate => (5, 0),
            InvalidateAck => (6, 0),
            Recall { write } => (7, u64::from(write)),
            RecallReply => (8, 0),
        }
    }

    fn msg(number: u8, word: u64) -> Option<invalidate::Msg> {
        use invalidate::Msg::{AskHome, Fetch, Grant, HomeIs, Invalidate, InvalidateAck, Recall, RecallReply};
        Some(match number {
            1 => AskHome,
            2 => HomeIs(NodeId(u8::try_from(word).ok()?)),
            3 => Fetch { write: word != 0 },
            4 => Grant { write: word & 1 != 0, page: word & 2 != 0 },
            5 => Invalidate,
            6 => InvalidateAck,
            7 => Recall { write: word != 0 },
            8 => RecallReply,
            _ => return None,
        })
    }

    fn counter(_msg: invalidate::Msg) -> Option<Counter> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_strings_rc_survives_the_wire() {
        use update::Msg::{AskHome, Fetch, Flush, FlushAck, HomeIs, NotAlone, Page, Update, UpdateAck};
        let last = NodeId(63);
        let pages = [true, false].map(|alone| Page { alone });
        let others = [AskHome, HomeIs(last), Fetch, NotAlone, Flush, FlushAck { updates: 62 }, UpdateAck];
        for msg in pages.into_iter().chain(others).chain([Update { releaser: last }]) {
            let (number, word) = StringsRc::words(msg);
            assert_eq!(StringsRc::msg(number, word), Some(msg));
        }
        assert_eq!(StringsRc::msg(99, 0), None);
    }

    #[test]
    fn every_message_of_strings_sc_survives_the_wire() {
        use invalidate::Msg::{AskHome, Fetch, Grant, HomeIs, Invalidate, InvalidateAck, Recall, RecallReply};
        let both = [true, false];
        let grants = both.into_iter().flat_map(|write| both.map(|page| Grant { write, page }));
        let asked = both.into_iter().flat_map(|write| [Fetch { write }, Recall { write }]);
        let others = [AskHome, HomeIs(NodeId(63)), Invalidate, InvalidateAck, RecallReply];
        for msg in grants.chain(asked).chain(others) {
            let (number, word) = StringsSc::words(msg);
            assert_eq!(StringsSc::msg(number, word), Some(msg));
        }
        assert_eq!(StringsSc::msg(99, 0), None);
    }
}
