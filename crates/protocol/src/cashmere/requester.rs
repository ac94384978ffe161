//! A node's copy of one unit, and what the node's views may do with it.

use finespun_types::{Access, NodeId, NodeIndex, NodeSet, ViewId, ViewSet};
use zerocopy::{FromZeros, Immutable};

use super::vocabulary::{Action, Actions, Event, Impossible, Mode, Msg};
use crate::page::{self, Ahead, Contents, Outcome, Place, Time, send, send_with};

/// The node's copy of one unit. Plain data; all-zero is a unit nobody has touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromZeros, Immutable)]
#[repr(C)]
pub struct Unit {
    /// When the copy's data was asked for: what the home had then, the copy has.
    pub updated: Time,
    /// When the fetch under way was sent.
    pub asked: Time,
    /// When the last write notice arrived.
    pub noticed_at: Time,
    /// When the last flush began.
    pub flushed: Time,
    /// Views with a mapping.
    pub mapped: ViewSet,
    /// Views with a writable mapping.
    pub writers: ViewSet,
    /// Views with the unit on their dirty lists.
    pub dirty: ViewSet,
    /// Views with the unit on their lists of write notices.
    pub noticed: ViewSet,
    /// Views that faulted, fetched, and were not served yet. A notice meanwhile is listed for them too.
    pub fetched_for: ViewSet,
    /// What the node has.
    pub mode: Mode,
    /// The home plus one; 0: not known.
    home_plus_one: NodeIndex,
    /// The view whose flush is under way plus one; 0: none.
    flusher_plus_one: u8,
    /// Notices of that flush not yet acknowledged.
    pub acks_due: u8,
    /// The home's last answer said that nobody else is in the sharing set.
    pub alone: bool,
    /// At home: the last other sharer has left since exclusive mode was last asked for.
    pub left_alone: bool,
    /// There is a twin; at home only while a view keeps its right to write from release to release, or since exclusive mode ended.
    pub has_twin: bool,
}

impl Unit {
    /// The home, if known.
    #[must_use]
    pub fn home(&self) -> Option<NodeId> {
        self.home_plus_one.checked_sub(1).map(NodeId)
    }

    /// The view whose flush is under way.
    #[must_use]
    pub fn flusher(&self) -> Option<ViewId> {
        self.flusher_plus_one.checked_sub(1).map(ViewId)
    }

    /// Is the node the home?
    #[must_use]
    pub fn is_home(&self, me: NodeId) -> bool {
        self.home() == Some(me)
    }

    /// Has the copy everything that write notices told of? The home's frame is the master and always current.
    #[must_use]
    pub fn is_current(&self, me: NodeId) -> bool {
        self.is_home(me) || self.updated > self.noticed_at
    }

    /// See [`page::Protocol::ahead`].
    #[must_use]
    pub fn ahead(&self, place: Place, view: ViewId) -> Ahead {
        match self.mode {
            _ if self.mapped.contains(view) => Ahead::Mapped,
            Mode::AskingHome | Mode::Fetching | Mode::Upgrading => Ahead::No,
            Mode::Exclusive => Ahead::HasCopy,
            Mode::Shared if self.serves(place, view) => Ahead::HasCopy,
            Mode::Shared => Ahead::Again,
            Mode::NoCopy if self.updated > 0 => Ahead::Again,
            Mode::Untouched | Mode::NoCopy => Ahead::First,
        }
    }

    /// One row per (mode, event); a row that needs more calls a named function. `now` is a fresh tick of the node's
    /// clock.
    ///
    /// # Errors
    /// [`Impossible`] when the pair cannot occur.
    #[rustfmt::skip]
    pub fn on(&mut self, place: Place, now: Time, event: Event, out: &mut Actions) -> Result<Outcome, Impossible> {
        use page::Event::{Flush, Invalidate, NothingChanged, ReadFault, Recv, WriteFault};
        use Mode::{AskingHome, Exclusive, Fetching, NoCopy, Shared, Untouched, Upgrading};
        use Msg::{AskHome, Break, BreakReply, Fetch, FlushAck, Grant, HomeIs, Leave, LeftAlone, Notice, NoticeAck, Upgrade, UpgradeReply};

        Ok(match (self.mode, event) {
            // Faults.
            (Untouched,              ReadFault { .. } | WriteFault { .. })  => return self.find_home(place, now, event, out),
            (AskingHome | Fetching,  ReadFault { .. } | WriteFault { .. })  => out.wait(&[]),
            (NoCopy,                 ReadFault { view, .. })                => self.fetch(now, view, false, out),
            (NoCopy,                 WriteFault { view, .. })               => self.fetch(now, view, true, out),
            (Shared | Upgrading,     ReadFault { view, since })             => self.read_shared(place, now, view, since, out),
            (Shared,                 WriteFault { view, .. })               => self.write_shared(place, now, view, out),
            (Upgrading,              WriteFault { .. })                     => out.wait(&[]),
            (Exclusive,              ReadFault { view, .. })                => self.map_read(view, false, out),
            (Exclusive,              WriteFault { view, .. })               => self.map_write(view, out),

            // Release. Not while a fetch is under way: its page would not have this diff, and would undo it in the
            // frame. Nor while another flush is: one at a time, so that its acknowledgements are told apart.
            (Shared,     Flush { view, since, keep }) if self.dirty.contains(view) => self.flush(place, now, view, since, keep, out),
            (Fetching,   Flush { view, .. })    if self.dirty.contains(view) => out.wait(&[]),
            (Shared,     NothingChanged) if self.flusher().is_some() => self.nothing_changed(place, out),

            // Acquire.
            (Shared | Fetching | Upgrading, Invalidate { view }) => self.invalidate(place, view, out),
            (Untouched | AskingHome | NoCopy | Exclusive, Invalidate { view }) => { self.noticed = self.noticed.without(view); out.done(&[]) }

            // The home's answers.
            (AskingHome, Recv { msg: HomeIs(home), .. })                     => { self.set_home(home); out.done(&[Action::Wake]) }
            (Fetching,   Recv { msg: Grant { exclusive, alone }, .. })       => self.granted(place, now, exclusive, alone, out),
            (Upgrading,  Recv { msg: UpgradeReply { granted }, .. })         => self.upgraded(now, granted, out),
            (Shared | Fetching, Recv { msg: FlushAck(sharers), .. }) if self.flusher().is_some() => self.flushed(place, sharers, out),

            // The home asks, and tells.
            (Exclusive,  Recv { msg: Break, .. })                            => self.leave_exclusive(place, out),
            (Shared | Upgrading, Recv { msg: LeftAlone, .. }) if self.is_home(place.me) => { self.left_alone = true; out.done(&[]) }

            // Other releasers. In exclusive mode the copy has it: the home granted after the flush.
            (Shared | Fetching | Upgrading, Recv { from, msg: Notice })      => self.notice(now, from, out),
            (Untouched | AskingHome | NoCopy | Exclusive, Recv { from, msg: Notice }) => out.done(&[send(from, NoticeAck)]),
            (Shared | Fetching, Recv { msg: NoticeAck, .. }) if self.acks_due > 0 => self.notice_acked(place, out),

            // Everything else, spelled out.
            (Untouched | AskingHome | NoCopy | Exclusive | Upgrading, Flush { .. })  // no dirty view in these modes
            | (Shared | Fetching, Flush { .. })                                      // not on the view's dirty list
            | (Untouched | AskingHome | NoCopy | Fetching | Upgrading | Exclusive | Shared, NothingChanged)
            | (Untouched | AskingHome | NoCopy | Upgrading | Exclusive, Recv { msg: FlushAck(_) | NoticeAck, .. })
            | (Shared | Fetching, Recv { msg: FlushAck(_) | NoticeAck, .. }) // no flush is under way
            | (Untouched | NoCopy | Fetching | Shared | Upgrading | Exclusive, Recv { msg: HomeIs(_), .. })
            | (Untouched | AskingHome | NoCopy | Shared | Upgrading | Exclusive, Recv { msg: Grant { .. }, .. })
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Exclusive, Recv { msg: UpgradeReply { .. }, .. })
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Upgrading, Recv { msg: Break, .. })
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Upgrading | Exclusive, Recv { msg: LeftAlone, .. }) // no sharer, or not home
            | (Untouched | AskingHome | NoCopy | Fetching | Shared | Upgrading | Exclusive,
               Recv { msg: AskHome | Fetch { .. } | Upgrade | Msg::Flush | Leave | BreakReply, .. }) // the home's
                => return Err(Impossible::Unit { mode: self.mode, event }),
        })
    }

    /// Whom to ask for the page: the address may say, else the manager does.
    fn find_home(&mut self, place: Place, now: Time, fault: Event, out: &mut Actions) -> Result<Outcome, Impossible> {
        if let Some(home) = place.fixed_home {
            self.set_home(home);
            return self.on(place, now, fault, out);
        }
        self.mode = Mode::AskingHome;
        Ok(out.wait(&[send(place.manager, Msg::AskHome)]))
    }

    fn set_home(&mut self, home: NodeId) {
        self.home_plus_one = home.0 + 1;
        self.mode = Mode::NoCopy;
    }

    /// The home has moved.
    pub(super) fn move_home(&mut self, home: NodeId) {
        self.home_plus_one = home.0 + 1;
    }

    /// The home, in modes that have one.
    pub(super) fn known_home(&self) -> NodeId {
        self.home().expect("every mode but Untouched and AskingHome follows set_home")
    }

    /// Asks for the page. The copy will be as new as this moment, not as the moment it arrives: a notice in between
    /// makes it out of date again.
    fn fetch(&mut self, now: Time, view: ViewId, write: bool, out: &mut Actions) -> Outcome {
        self.mode = Mode::Fetching;
        self.fetched_for = self.fetched_for.with(view);
        self.asked = now;
        out.wait(&[send(self.known_home(), Msg::Fetch { write })])
    }

    /// Can this view's access be served from the copy as it is? A copy fetched for this very fault is new enough for it,
    /// whatever notices came since: they are on the view's list, for its next acquire. Unless that was already: another
    /// thread of the view may have acquired while this one waited, and must not find the old copy mapped.
    pub(super) fn serves(&self, place: Place, view: ViewId) -> bool {
        self.is_current(place.me) || self.fetched_for.contains(view) || self.mapped.contains(view)
    }

    fn read_shared(&mut self, place: Place, now: Time, view: ViewId, since: Time, out: &mut Actions) -> Outcome {
        if self.serves(place, view) {
            let skipped = !self.mapped.contains(view) && !self.is_home(place.me) && self.updated < since;
            self.map_read(view, skipped, out)
        } else if self.mode == Mode::Upgrading {
            out.wait(&[]) // the answer first: one question to the home at a time
        } else {
            self.fetch(now, view, false, out)
        }
    }

    fn write_shared(&mut self, place: Place, now: Time, view: ViewId, out: &mut Actions) -> Outcome {
        if self.writers.contains(view) {
            return self.map_write(view, out);
        }
        if !self.serves(place, view) {
            // Exclusive mode is asked for only when nothing of an earlier interval is still owed.
            return self.fetch(now, view, self.dirty.is_empty() && self.flusher().is_none(), out);
        }
        let first_writer = self.dirty.is_empty();
        if first_writer && (self.alone || self.left_alone) && self.flusher().is_none() {
            self.mode = Mode::Upgrading;
            return out.wait(&[send(self.known_home(), Msg::Upgrade)]);
        }
        // The twin before the right to write: it must not have this view's stores.
        if !self.has_twin && !self.is_home(place.me) {
            self.has_twin = true;
            out.push(Action::MakeTwin);
        }
        if !self.dirty.contains(view) {
            self.dirty = self.dirty.with(view);
            out.push(Action::ListDirty(ViewSet::only(view)));
        }
        self.allow_write(view, out);
        Outcome::Done
    }

    fn map_read(&mut self, view: ViewId, fetch_skipped: bool, out: &mut Actions) -> Outcome {
        if fetch_skipped {
            out.push(Action::FetchSkipped);
        }
        // A view that may write already keeps that right: the fault was spurious, or the mapping was lost.
        let access = if self.writers.contains(view) { Access::Write } else { Access::Read };
        self.fetched_for = self.fetched_for.without(view);
        self.mapped = self.mapped.with(view);
        out.push(Action::Protect { view, access });
        Outcome::Done
    }

    fn map_write(&mut self, view: ViewId, out: &mut Actions) -> Outcome {
        self.allow_write(view, out);
        Outcome::Done
    }

    fn allow_write(&mut self, view: ViewId, out: &mut Actions) {
        self.fetched_for = self.fetched_for.without(view);
        self.mapped = self.mapped.with(view);
        self.writers = self.writers.with(view);
        out.push(Action::Protect { view, access: Access::Write });
    }

    /// The page came. Local writers keep their stores: what they have not flushed is in the frame and not in the twin.
    fn granted(&mut self, place: Place, now: Time, exclusive: bool, alone: bool, out: &mut Actions) -> Outcome {
        self.updated = self.asked;
        self.alone = alone;
        self.mode = Mode::Shared;
        if !self.is_home(place.me) {
            out.push(if self.has_twin { Action::Merge } else { Action::Install });
        }
        if exclusive {
            self.enter_exclusive(now, out);
        }
        out.push(Action::Wake);
        Outcome::Done
    }

    pub(super) fn upgraded(&mut self, now: Time, granted: bool, out: &mut Actions) -> Outcome {
        self.mode = Mode::Shared;
        (self.alone, self.left_alone) = (false, false);
        if granted {
            self.enter_exclusive(now, out);
        }
        out.push(Action::Wake);
        Outcome::Done
    }

    /// The home says: only you, and nothing is missing. Notices that came before are thereby obeyed.
    fn enter_exclusive(&mut self, now: Time, out: &mut Actions) {
        self.mode = Mode::Exclusive;
        self.updated = now;
        out.push(Action::EnteredExclusive);
    }

    /// Another node wants the page. The writers go on writing, so they get the unit on their dirty lists
    /// (no-longer-exclusive notices) and a twin that holds what the home is sent. The lists first: a store that misses
    /// the twin is then made by a view whose next release finds the unit on its list. At the home a twin, too: mostly nobody has
    /// written since, and who fetched the page need not be told.
    fn leave_exclusive(&mut self, place: Place, out: &mut Actions) -> Outcome {
        let home = self.known_home();
        self.mode = Mode::Shared;
        self.alone = false;
        let written = !self.writers.is_empty();
        if written {
            self.dirty = self.writers;
            self.has_twin = true;
            out.push(Action::ListDirty(self.writers));
            out.push(Action::MakeTwin);
        }
        let contents = match (self.is_home(place.me), written) {
            (true, _) => Contents::Nothing,
            (false, false) => Contents::Frame,
            (false, true) => Contents::Twin,
        };
        out.push(send_with(home, Msg::BreakReply, contents));
        Outcome::Done
    }

    /// One unit of a release: rights first, so that the view's later stores fault and make a new twin; then the diff. A view that
    /// keeps the right stays on the dirty list instead, and the twin becomes what was flushed. Not the only sharer: its next
    /// fault brings exclusive mode, which costs nothing at all.
    fn flush(&mut self, place: Place, now: Time, view: ViewId, since: Time, keep: bool, out: &mut Actions) -> Outcome {
        if self.flusher().is_some() {
            return out.wait(&[]);
        }
        let skipped = self.flushed > since;
        let keeps = keep && self.writers.contains(view) && !skipped && !self.alone;
        if keeps {
            out.push(Action::ListDirty(ViewSet::only(view)));
            out.push(Action::RightKept);
        } else {
            self.dirty = self.dirty.without(view);
            if self.writers.contains(view) {
                self.writers = self.writers.without(view);
                out.push(Action::Protect { view, access: Access::Read });
            }
        }
        if skipped {
            // Somebody flushed this unit after the release began, all this view's stores with it [Cashmere05 §2.1].
            out.push(Action::FlushSkipped);
            if self.dirty.is_empty() && self.has_twin {
                self.has_twin = false;
                out.push(Action::DropTwin);
            }
            self.leave_if_unmapped(place, out);
            return Outcome::Done;
        }
        self.flushed = now;
        self.flusher_plus_one = view.0 + 1;
        let contents = if self.is_home(place.me) && !self.has_twin {
            // A twin at home shows whether a view that keeps its right has written since: without it each of its releases would
            // tell all sharers. Made before they are told of this one, so what it has is no news to any of them afterwards.
            if keeps {
                self.has_twin = true;
                out.push(Action::MakeTwin);
            }
            Contents::Nothing
        } else {
            let refresh = !self.dirty.is_empty();
            self.has_twin = refresh;
            Contents::Diff { refresh }
        };
        out.push(send_with(self.known_home(), Msg::Flush, contents));
        Outcome::Begun
    }

    fn nothing_changed(&mut self, place: Place, out: &mut Actions) -> Outcome {
        let kept = self.flusher().is_some_and(|view| self.writers.contains(view));
        let outcome = self.flush_done(place, out);
        if kept {
            out.push(Action::KeptInVain);
        }
        outcome
    }

    /// The home applied the diff and told the sharing set: notices to the others. The home needs none, its frame has
    /// the changes [Cashmere05 §2.1].
    fn flushed(&mut self, place: Place, sharers: NodeSet, out: &mut Actions) -> Outcome {
        let others = sharers.without(place.me).without(self.known_home());
        self.alone = sharers == NodeSet::only(place.me);
        if others.is_empty() {
            return self.flush_done(place, out);
        }
        self.acks_due = others.len() as u8;
        out.done(&[Action::Send { to: others, msg: Msg::Notice, contents: Contents::Nothing }])
    }

    fn notice_acked(&mut self, place: Place, out: &mut Actions) -> Outcome {
        self.acks_due -= 1;
        if self.acks_due == 0 { self.flush_done(place, out) } else { out.done(&[]) }
    }

    fn flush_done(&mut self, place: Place, out: &mut Actions) -> Outcome {
        let view = self.flusher().expect("the rows that call this have a flush under way");
        self.flusher_plus_one = 0;
        out.push(Action::FlushDone(view));
        self.leave_if_unmapped(place, out);
        out.push(Action::Wake);
        Outcome::Done
    }

    /// A write notice arrived: listed for every view that maps the unit or is about to, obeyed at its next acquire.
    fn notice(&mut self, now: Time, from: NodeId, out: &mut Actions) -> Outcome {
        self.noticed_at = now;
        let news = self.mapped.union(self.fetched_for).minus(self.noticed);
        self.noticed = self.noticed.union(news);
        if !news.is_empty() {
            out.push(Action::ListNotice(news));
        }
        out.push(send(from, Msg::NoticeAck));
        Outcome::Done
    }

    /// Obeys a notice, unless the frame was fetched anew since it came.
    fn invalidate(&mut self, place: Place, view: ViewId, out: &mut Actions) -> Outcome {
        self.noticed = self.noticed.without(view);
        self.fetched_for = self.fetched_for.without(view);
        if self.mapped.contains(view) && !self.is_current(place.me) {
            self.mapped = self.mapped.without(view);
            self.writers = self.writers.without(view);
            out.push(Action::Protect { view, access: Access::None });
            self.leave_if_unmapped(place, out);
        }
        Outcome::Done
    }

    /// Nobody on the node maps the unit and nothing of it is owed to the home: out of the sharing set. The home itself
    /// stays: its frame needs no care.
    fn leave_if_unmapped(&mut self, place: Place, out: &mut Actions) {
        let owes = !self.dirty.is_empty() || self.flusher().is_some();
        if self.mode == Mode::Shared && self.mapped.is_empty() && !owes && !self.is_home(place.me) {
            self.mode = Mode::NoCopy;
            self.fetched_for = ViewSet::EMPTY;
            out.push(send(self.known_home(), Msg::Leave));
        }
    }
}
