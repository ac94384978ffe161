//! Events and actions as they stand in a trace line: `n1 u0 Shared --Flush(v0)--> Shared [Protect(v0 Read) Flush(n0)+Diff]`.

use finespun_protocol::page::{Action, Contents, Event};

use crate::subject::Subject;

/// An event, with whose it is.
pub(crate) fn event<P: Subject>(event: Event<P::Msg>) -> String {
    match event {
        Event::ReadFault { view, .. } => format!("ReadFault({view:?})"),
        Event::WriteFault { view, .. } => format!("WriteFault({view:?})"),
        Event::Flush { view, keep: false, .. } => format!("Flush({view:?})"),
        Event::Flush { view, keep: true, .. } => format!("Flush({view:?} keep)"),
        Event::NothingChanged => "NothingChanged".into(),
        Event::Invalidate { view } => format!("Invalidate({view:?})"),
        Event::Recv { from, msg } => P::message(from, msg),
    }
}

/// An action.
pub(crate) fn action<P: Subject>(action: &Action<P::Msg>) -> String {
    match *action {
        Action::Send { to, msg, contents } => {
            let sends = to.iter().map(|to| P::message(to, msg) + with(contents));
            sends.collect::<Vec<_>>().join(" ")
        }
        Action::Protect { view, access } => format!("Protect({view:?} {access:?})"),
        Action::ListDirty(views) => format!("ListDirty{views:?}"),
        Action::ListNotice(views) => format!("ListNotice{views:?}"),
        Action::Install
        | Action::Merge
        | Action::ApplyUpdate
        | Action::MakeTwin
        | Action::DropTwin
        | Action::FlushDone(_)
        | Action::Wake
        | Action::FetchSkipped
        | Action::FlushSkipped
        | Action::RightKept
        | Action::KeptInVain
        | Action::EnteredExclusive
        | Action::Broadcast
        | Action::DropBuffer
        | Action::HomeMoved
        | Action::HomeKept => format!("{action:?}"),
    }
}

fn with(contents: Contents) -> &'static str {
    match contents {
        Contents::Nothing => "",
        Contents::Frame => "+Frame",
        Contents::Received => "+Received",
        Contents::Twin => "+Twin",
        Contents::Released => "+Released",
        Contents::Diff { refresh: false } => "+Diff",
        Contents::Diff { refresh: true } => "+Diff, twin refreshed",
    }
}

/// All actions of a handler.
pub(crate) fn actions<P: Subject>(all: &[Action<P::Msg>]) -> String {
    format!("[{}]", all.iter().map(action::<P>).collect::<Vec<_>>().join(" "))
}
