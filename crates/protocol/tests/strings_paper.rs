//! What [Strings §2.3] to [Strings §2.6] say of the two protocols, one test for each claim, on the tables themselves. The tests stand in
//! for the driver: they present events and read the actions.

use finespun_protocol::page::{Action, Contents, Message, NODE, Outcome, Place, Protocol};
use finespun_protocol::strings::invalidate::{self, StringsSc};
use finespun_protocol::strings::update::{self, StringsRc};
use finespun_types::{Access, NodeId, NodeSet, ViewId, ViewSet};

const HOME: NodeId = NodeId(0);
const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const A: ViewId = ViewId(0);
const B: ViewId = ViewId(1);
const PLACE: Place = Place { me: ME, manager: HOME, fixed_home: Some(HOME) };

mod rc {
    use update::{Directory, Event, Msg, Step, Unit};

    use super::*;

    fn on(unit: &mut Unit, event: Event) -> Step {
        Step::of(|out| unit.on(PLACE, event, out)).expect("the table has a row")
    }

    fn recv(unit: &mut Unit, from: NodeId, msg: Msg) -> Step {
        on(unit, Event::Recv { from, msg })
    }

    fn write(unit: &mut Unit, view: ViewId) -> Step {
        on(unit, Event::WriteFault { view, since: 0 })
    }

    fn flush(unit: &mut Unit, view: ViewId) -> Step {
        on(unit, Event::Flush { view, since: 0, keep: false })
    }

    /// A copy that view A writes.
    fn written() -> Unit {
        let mut unit = Unit::default();
        write(&mut unit, A);
        recv(&mut unit, HOME, Msg::Page { alone: false });
        write(&mut unit, A);
        unit
    }

    #[test]
    fn a_write_makes_a_twin_before_the_right_to_write() {
        let mut unit = Unit::default();
        assert_eq!(write(&mut unit, A).outcome, Outcome::Wait);
        recv(&mut unit, HOME, Msg::Page { alone: false });
        let step = write(&mut unit, A);
        let right = Action::Protect { view: A, access: Access::Write };
        assert_eq!(step.actions.as_slice(), [Action::MakeTwin, Action::ListDirty(ViewSet::only(NODE)), right]);
    }

    #[test]
    fn at_a_release_the_difference_between_page_and_twin_is_sent() {
        let step = flush(&mut written(), A);
        let diff = Contents::Diff { refresh: false };
        let sent = Action::Send { to: NodeSet::only(HOME), msg: Msg::Flush, contents: diff };
        assert_eq!(step.actions.as_slice().last(), Some(&sent));
        assert_eq!(step.outcome, Outcome::Begun);
    }

    #[test]
    fn the_diff_reaches_everybody_who_shares_the_page() {
        let mut directory = Directory::default();
        for node in [HOME, ME, OTHER, NodeId(3)] {
            Step::of(|out| directory.on(HOME, node, Msg::Fetch, out)).unwrap();
        }
        let step = Step::of(|out| directory.on(HOME, ME, Msg::Flush, out)).unwrap();
        let (to, msg) = (NodeSet::only(OTHER).with(NodeId(3)), Msg::Update { releaser: ME });
        let update = Action::Send { to, msg, contents: Contents::Received };
        let ack =
            Action::Send { to: NodeSet::only(ME), msg: Msg::FlushAck { updates: 2 }, contents: Contents::Nothing };
        assert_eq!(step.actions.as_slice(), [Action::ApplyUpdate, update, ack]);
    }

    #[test]
    fn a_release_is_over_when_every_sharer_has_the_diff_in_whatever_order_they_say_so() {
        for home_first in [true, false] {
            let mut unit = written();
            flush(&mut unit, A);
            let mut acks = vec![(OTHER, Msg::UpdateAck), (NodeId(3), Msg::UpdateAck)];
            acks.insert(if home_first { 0 } else { 2 }, (HOME, Msg::FlushAck { updates: 2 }));
            let steps: Vec<Step> = acks.into_iter().map(|(from, msg)| recv(&mut unit, from, msg)).collect();
            let done = |step: &Step| step.actions.as_slice().contains(&Action::FlushDone(NODE));
            assert!(!done(&steps[0]) && !done(&steps[1]) && done(&steps[2]));
        }
    }

    #[test]
    fn an_update_is_written_to_the_page_without_changing_its_protection() {
        // The shadow address of figure 2: the engine's own mapping.
        let step = recv(&mut written(), HOME, Msg::Update { releaser: OTHER });
        assert_eq!(step.actions.as_slice()[0], Action::ApplyUpdate);
        assert!(!step.actions.as_slice().iter().any(|action| matches!(action, Action::Protect { .. })));
    }

    #[test]
    fn what_another_processor_of_the_node_wrote_goes_out_with_any_release_of_the_node() {
        let mut unit = written();
        let step = flush(&mut unit, B);
        assert!(step.actions.as_slice().contains(&Action::ListDirty(ViewSet::only(NODE))), "A goes on writing");
        let diff =
            |action: &Action<Msg>| matches!(action, Action::Send { contents: Contents::Diff { refresh: true }, .. });
        assert!(step.actions.as_slice().iter().any(diff));
        assert_eq!(StringsRc::access(&unit, A), Access::Write);
    }

    #[test]
    fn the_home_makes_no_twin_until_another_node_has_the_page() {
        let (mut unit, mut directory) = (Unit::default(), Directory::default());
        let place = Place { me: HOME, ..PLACE };
        Step::of(|out| unit.on(place, Event::WriteFault { view: A, since: 0 }, out)).unwrap();
        let alone = Step::of(|out| directory.on(HOME, HOME, Msg::Fetch, out)).unwrap();
        assert!(matches!(alone.actions.as_slice(), [Action::Send { msg: Msg::Page { alone: true }, .. }]));
        Step::of(|out| unit.on(place, Event::Recv { from: HOME, msg: Msg::Page { alone: true } }, out)).unwrap();
        let step = Step::of(|out| unit.on(place, Event::WriteFault { view: A, since: 0 }, out)).unwrap();
        assert_eq!(step.actions.as_slice(), [Action::Protect { view: A, access: Access::Write }]);
        let told = Step::of(|out| directory.on(HOME, ME, Msg::Fetch, out)).unwrap();
        assert!(matches!(told.actions.as_slice()[0], Action::Send { msg: Msg::NotAlone, .. }), "before the page");
        let step = Step::of(|out| unit.on(place, Event::Recv { from: HOME, msg: Msg::NotAlone }, out)).unwrap();
        assert_eq!(step.actions.as_slice(), [Action::ListDirty(ViewSet::only(NODE)), Action::MakeTwin]);
    }

    #[test]
    fn a_release_begins_no_second_flush_of_a_unit_before_the_first_is_done() {
        let mut unit = written();
        flush(&mut unit, B);
        assert_eq!(flush(&mut unit, A).outcome, Outcome::Wait);
    }
}

mod sc {
    use invalidate::{Directory, Event, Msg, Step, Unit};

    use super::*;

    fn on(unit: &mut Unit, event: Event) -> Step {
        Step::of(|out| unit.on(PLACE, event, out)).expect("the table has a row")
    }

    fn recv(unit: &mut Unit, msg: Msg) -> Step {
        on(unit, Event::Recv { from: HOME, msg })
    }

    fn write(unit: &mut Unit, view: ViewId) -> Step {
        on(unit, Event::WriteFault { view, since: 0 })
    }

    fn read(unit: &mut Unit, view: ViewId) -> Step {
        on(unit, Event::ReadFault { view, since: 0 })
    }

    /// The owner's copy, written by view A.
    fn owned() -> Unit {
        let mut unit = Unit::default();
        write(&mut unit, A);
        recv(&mut unit, Msg::Grant { write: true, page: true });
        write(&mut unit, A);
        unit
    }

    fn sends(step: &Step, wanted: Msg) -> bool {
        step.actions.as_slice().iter().any(|action| matches!(action, Action::Send { msg, .. } if *msg == wanted))
    }

    #[test]
    fn a_node_may_write_only_when_every_other_copy_is_gone() {
        let mut directory = Directory::default();
        for node in [ME, OTHER, NodeId(3)] {
            Step::of(|out| directory.on(HOME, node, Msg::Fetch { write: false }, out)).unwrap();
        }
        let step = Step::of(|out| directory.on(HOME, ME, Msg::Fetch { write: true }, out)).unwrap();
        let to = NodeSet::only(OTHER).with(NodeId(3));
        let gone = Action::Send { to, msg: Msg::Invalidate, contents: Contents::Nothing };
        assert_eq!(step.actions.as_slice(), [gone]);
        let grant = Msg::Grant { write: true, page: false };
        assert!(!sends(&Step::of(|out| directory.on(HOME, OTHER, Msg::InvalidateAck, out)).unwrap(), grant));
        assert!(sends(&Step::of(|out| directory.on(HOME, NodeId(3), Msg::InvalidateAck, out)).unwrap(), grant));
    }

    #[test]
    fn the_page_goes_out_only_when_no_view_can_write_it_any_more() {
        let mut unit = owned();
        write(&mut unit, B);
        let asked = recv(&mut unit, Msg::Recall { write: true });
        assert_eq!(asked.actions.as_slice(), [Action::ListNotice(ViewSet::only(A).with(B))]);
        assert!(!sends(&on(&mut unit, Event::Invalidate { view: A }), Msg::RecallReply));
        let last = on(&mut unit, Event::Invalidate { view: B });
        assert_eq!(last.actions.as_slice()[0], Action::Protect { view: B, access: Access::None });
        assert!(sends(&last, Msg::RecallReply));
    }

    #[test]
    fn an_owner_that_is_asked_for_a_copy_to_read_goes_on_reading() {
        let mut unit = owned();
        recv(&mut unit, Msg::Recall { write: false });
        on(&mut unit, Event::Invalidate { view: A });
        assert_eq!(StringsSc::access(&unit, A), Access::Read);
    }

    #[test]
    fn a_fresh_page_is_held_until_the_fault_that_asked_for_it_is_served() {
        let mut unit = Unit::default();
        write(&mut unit, A);
        recv(&mut unit, Msg::Grant { write: true, page: true });
        assert!(recv(&mut unit, Msg::Recall { write: true }).actions.as_slice().is_empty(), "held");
        assert_eq!(read(&mut unit, B).outcome, Outcome::Wait, "not for others");
        let served = write(&mut unit, A);
        assert_eq!(served.outcome, Outcome::Done);
        assert!(served.actions.as_slice().contains(&Action::ListNotice(ViewSet::only(A))));
    }

    #[test]
    fn readers_and_writers_are_served_in_turn_and_nobody_is_passed_over() {
        let mut directory = Directory::default();
        Step::of(|out| directory.on(HOME, ME, Msg::Fetch { write: true }, out)).unwrap();
        for (node, write) in [(OTHER, true), (NodeId(3), true), (NodeId(4), false)] {
            Step::of(|out| directory.on(HOME, node, Msg::Fetch { write }, out)).unwrap();
        }
        // OTHER is being served; then the reader, then the other writer.
        let first = Step::of(|out| directory.on(HOME, ME, Msg::RecallReply, out)).unwrap();
        assert!(sends(&first, Msg::Grant { write: true, page: true }) && sends(&first, Msg::Recall { write: false }));
        let second = Step::of(|out| directory.on(HOME, OTHER, Msg::RecallReply, out)).unwrap();
        assert!(sends(&second, Msg::Grant { write: false, page: true }) && sends(&second, Msg::Invalidate));
    }

    #[test]
    fn releases_and_acquires_have_nothing_to_do() {
        assert!(
            Step::of(|out| owned().on(PLACE, Event::Flush { view: A, since: 0, keep: false }, out)).is_err(),
            "nothing is ever dirty"
        );
        const { assert!(!StringsSc::RELEASES_NODE && StringsSc::REVOKES) };
    }

    #[test]
    fn what_goes_to_the_home_waits_until_no_lock_is_held() {
        assert!(Msg::Fetch { write: true }.is_between_equals() && Msg::RecallReply.is_between_equals());
        assert!(!Msg::Invalidate.is_between_equals() && !Msg::AskHome.is_between_equals());
    }
}
