//! The words of a call of the heap in a request.

use finespun_engine::allocation::Call;
use finespun_heap::Policy;
use finespun_types::{NodeId, NodeIndex};

/// The number of [`Call::Free`] on the wire.
const FREE: u8 = 2;

/// Does the call with this number pass on what its caller knows?
pub fn releases(number: u8) -> bool {
    parse(number, [0; 3], NodeId(0)).is_some_and(|call| call.releases())
}

/// Its number on the wire, and its arguments.
pub fn words(call: Call) -> (u8, [u64; 3]) {
    match call {
        Call::Allocate { size, align, policy, .. } => {
            let policy = match policy {
                Policy::FirstTouch => 0,
                Policy::On(node) => 1 | u64::from(node.0) << 8,
                Policy::Cyclic { block_pages_log2 } => 2 | u64::from(block_pages_log2) << 8,
            };
            (1, [size, align, policy])
        }
        Call::Free { offset } => (FREE, [offset, 0, 0]),
        Call::Usable { offset } => (3, [offset, 0, 0]),
        Call::Together { number, size } => (4, [number, size, 0]),
    }
}

/// The call of a processor of this node; `None` if there is none.
pub fn parse(number: u8, [a, b, c]: [u64; 3], node: NodeId) -> Option<Call> {
    Some(match number {
        1 => {
            let detail = (c >> 8) as u8;
            let policy = match c & 0xff {
                0 => Policy::FirstTouch,
                1 => Policy::On(NodeId((c >> 8) as NodeIndex)),
                2 => Policy::Cyclic { block_pages_log2: detail },
                _ => return None,
            };
            Call::Allocate { size: a, align: b, policy, node }
        }
        FREE => Call::Free { offset: a },
        3 => Call::Usable { offset: a },
        4 => Call::Together { number: a, size: b },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_survives_the_wire() {
        let node = NodeId(5);
        for policy in [Policy::FirstTouch, Policy::On(NodeId(63)), Policy::Cyclic { block_pages_log2: 12 }] {
            let call = Call::Allocate { size: 1 << 40, align: 64, policy, node };
            let (number, arguments) = words(call);
            assert_eq!(parse(number, arguments, node), Some(call));
        }
        for call in
            [Call::Free { offset: 4096 }, Call::Usable { offset: 16 }, Call::Together { number: 3, size: 1 << 33 }]
        {
            let (number, arguments) = words(call);
            assert_eq!(parse(number, arguments, node), Some(call));
        }
        assert_eq!(parse(9, [0; 3], node), None);
    }

    #[test]
    fn who_frees_memory_passes_on_what_it_stored_there() {
        for call in [Call::Free { offset: 64 }, Call::Usable { offset: 64 }, Call::Together { number: 1, size: 64 }] {
            assert_eq!(releases(words(call).0), call.releases());
        }
        assert!(!releases(9));
    }
}
