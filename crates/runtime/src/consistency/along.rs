//! What goes along with messages of synchronization. A home-based engine tells nothing with them. Under lazy release consistency a
//! release tells a carrier what its processor knows, and a grant tells the acquirer what the carrier's releasers knew.
//!
//! ```text
//!   release, at the carrier's manager:   of_mine -> keep (under the table's lock)        granted, for each grant
//!   by messages:                         send_request -> take_request -> keep            send_reply -> take_reply
//! ```

use finespun_sync::{Event, threads};
use finespun_types::{NodeId, ProcessorId};

use crate::consistency::tmk::news::{self, Time};
use crate::messages::heap_call;
use crate::messages::wire::{self, Reply, Request};
use crate::node::carriers::{self, Passes};
use crate::node::cluster::Cluster;
use crate::node::engine::Engine;

/// What the sender of an event knows, if the engine tells that.
pub struct Told(Option<Time>);

/// What a request passes on.
fn passed_by(request: &Request) -> Passes {
    match *request {
        Request::Object { event, .. } if event.releases() => Passes::Releases(event.object()),
        Request::Thread { event, .. } if event.releases() => Passes::Releases(carriers::THREADS),
        Request::Heap { call, .. } if heap_call::releases(call) => Passes::Releases(carriers::HEAP),
        Request::Object { .. } | Request::Thread { .. } | Request::Heap { .. } => Passes::Asks,
        // What who created the thread knew.
        Request::Start { .. } => Passes::Grants(carriers::THREADS),
        Request::Stop | Request::Build { .. } | Request::Migratory { .. } | Request::Touched { .. } => Passes::Nothing,
    }
}

/// What this node's processors know, for an object whose table the caller runs itself.
pub fn of_mine(cluster: &Cluster, event: Event) -> Told {
    Told(match cluster.engine {
        Engine::Home(_) => None,
        Engine::Lazy => Some(news::to_tell(cluster, event.object())),
    })
}

/// An object's manager keeps what the sender of an event knows, if the event releases. Under the lock of the object's table, so that all
/// who are granted at once are told the same.
pub fn keep(cluster: &Cluster, manager: NodeId, event: Event, told: &Told) {
    if let Told(Some(time)) = told
        && event.releases()
    {
        news::keep(cluster, manager, event.object(), time);
    }
}

/// A processor of this node has released to the heap or the threads, whose memory is reached.
pub fn released(cluster: &Cluster, keeper: NodeId, about: u64) {
    match cluster.engine {
        Engine::Home(_) => {}
        Engine::Lazy => news::keep(cluster, keeper, about, &news::to_tell(cluster, about)),
    }
}

/// The same to the threads, if the event releases.
pub fn released_by_thread(cluster: &Cluster, keeper: NodeId, event: threads::Event) {
    if event.releases() {
        released(cluster, keeper, carriers::THREADS);
    }
}

/// A processor of `node`, whose memory is reached, is granted something by a carrier at `manager`.
pub fn granted(cluster: &Cluster, manager: NodeId, about: u64, node: NodeId) {
    match cluster.engine {
        Engine::Lazy if about != carriers::NOTHING => news::granted(cluster, manager, about, node),
        Engine::Home(_) | Engine::Lazy => {}
    }
}

/// Sends a request, with what must be told along.
pub fn send_request(cluster: &Cluster, to: NodeId, request: Request) {
    let send = |along: &[u8]| wire::send_request(cluster, to, request, along);
    match cluster.engine {
        Engine::Home(_) => send(&[]),
        Engine::Lazy => news::with_request(cluster, to, passed_by(&request), send),
    }
}

/// A request came: what its sender knows, for [`keep`].
pub fn take_request(cluster: &Cluster, from: NodeId, request: &Request, along: &[u8]) -> Told {
    Told(match cluster.engine {
        Engine::Home(_) => None,
        Engine::Lazy => news::take_request(cluster, from, passed_by(request), along),
    })
}

/// Sends an answer about a carrier, with what its releasers knew; where it is an error, with `text`.
pub fn send_reply(cluster: &Cluster, to: NodeId, who: ProcessorId, reply: Reply, about: u64, text: &[u8]) {
    let send = |contents: &[u8]| wire::send_reply(cluster, to, who, reply, about, contents);
    match cluster.engine {
        Engine::Lazy if reply.status == 0 && about != carriers::NOTHING => news::with_reply(cluster, to, about, send),
        Engine::Home(_) | Engine::Lazy => send(text),
    }
}

/// Such an answer came to a processor of this node.
pub fn take_reply(cluster: &Cluster, from: NodeId, reply: Reply, about: u64, contents: &[u8]) {
    match cluster.engine {
        Engine::Lazy if reply.status == 0 && !contents.is_empty() => news::take_reply(cluster, from, about, contents),
        Engine::Home(_) | Engine::Lazy => {}
    }
}

#[cfg(test)]
mod tests {
    use finespun_types::ProcessorId;

    use super::*;

    #[test]
    fn a_request_passes_on_what_its_event_releases() {
        let (object, who) = (0x2000_0000_0040, ProcessorId(3));
        let passed = |event| passed_by(&Request::Object { who, event });
        assert_eq!(passed(Event::Unlock { mutex: object, who }), Passes::Releases(object));
        assert_eq!(passed(Event::Lock { mutex: object, who }), Passes::Asks);
        let arrival = Event::Arrive { barrier: carriers::ALL, count: 4, who, weight: 1 };
        assert_eq!(passed(arrival), Passes::Releases(carriers::ALL));
    }

    #[test]
    fn threads_and_the_heap_are_carriers_and_the_start_of_a_thread_is_a_grant() {
        let who = ProcessorId(3);
        let of_thread = |event| passed_by(&Request::Thread { who, event });
        assert_eq!(of_thread(threads::Event::Finished { who, result: 0 }), Passes::Releases(carriers::THREADS));
        assert_eq!(of_thread(threads::Event::Quiet { by: who }), Passes::Asks);
        let (call, arguments) = heap_call::words(finespun_engine::allocation::Call::Free { offset: 64 });
        assert_eq!(passed_by(&Request::Heap { who, call, arguments }), Passes::Releases(carriers::HEAP));
        let start = Request::Start { who, function: 1, argument: 2, thread: threads::Handle(3) };
        assert_eq!(passed_by(&start), Passes::Grants(carriers::THREADS));
        assert_eq!(passed_by(&Request::Stop), Passes::Nothing);
    }
}
