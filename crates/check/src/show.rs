//! Events and actions as they stand in a trace line: `n1 u0 Shared --Flush(v0)--> Shared [Protect(v0 Read) Flush(n0)+Diff]`.

use finespun_protocol::cashmere::{Action, Contents, Event, Msg};
use finespun_types::NodeId;

/// An event, with whose it is.
pub(crate) fn event(event: Event) -> String {
    match event {
        Event::ReadFault { view, .. } => format!("ReadFault({view:?})"),
        Event::WriteFault { view, .. } => format!("WriteFault({view:?})"),
        Event::Flush { view, .. } => format!("Flush({view:?})"),
        Event::NothingChanged => "NothingChanged".into(),
        Event::Invalidate { view } => format!("Invalidate({view:?})"),
        Event::Recv { from, msg } => message(from, msg),
    }
}

/// A message, with the node at its other end.
pub(crate) fn message(other: NodeId, msg: Msg) -> String {
    match msg {
        Msg::Fetch { write: true } => format!("Fetch({other:?} write)"),
        Msg::Grant { exclusive: true, .. } => format!("Grant({other:?} exclusive)"),
        Msg::UpgradeReply { granted } => {
            format!("UpgradeReply({other:?} {})", if granted { "granted" } else { "refused" })
        }
        Msg::HomeIs(home) => format!("HomeIs({other:?} {home:?})"),
        Msg::FlushAck(sharers) => format!("FlushAck({other:?} {sharers:?})"),
        Msg::Fetch { write: false } => format!("Fetch({other:?})"),
        Msg::Grant { exclusive: false, .. } => format!("Grant({other:?})"),
        Msg::AskHome
        | Msg::Upgrade
        | Msg::Break
        | Msg::BreakReply
        | Msg::Flush
        | Msg::Leave
        | Msg::Notice
        | Msg::NoticeAck => format!("{msg:?}({other:?})"),
    }
}

/// An action.
pub(crate) fn action(action: &Action) -> String {
    match *action {
        Action::Send { to, msg, contents } => {
            let sends = to.iter().map(|to| message(to, msg) + with(contents));
            sends.collect::<Vec<_>>().join(" ")
        }
        Action::Protect { view, access } => format!("Protect({view:?} {access:?})"),
        Action::ListDirty(views) => format!("ListDirty{views:?}"),
        Action::ListNotice(views) => format!("ListNotice{views:?}"),
        Action::Install
        | Action::Merge
        | Action::ApplyDiff
        | Action::MakeTwin
        | Action::DropTwin
        | Action::FlushDone(_)
        | Action::Wake
        | Action::FetchSkipped
        | Action::FlushSkipped
        | Action::EnteredExclusive => format!("{action:?}"),
    }
}

fn with(contents: Contents) -> &'static str {
    match contents {
        Contents::Nothing => "",
        Contents::Frame => "+Frame",
        Contents::Twin => "+Twin",
        Contents::Diff { refresh: false } => "+Diff",
        Contents::Diff { refresh: true } => "+Diff, twin refreshed",
    }
}

/// All actions of a handler.
pub(crate) fn actions(all: &[Action]) -> String {
    format!("[{}]", all.iter().map(action).collect::<Vec<_>>().join(" "))
}
