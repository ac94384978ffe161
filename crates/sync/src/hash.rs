//! From an address to its manager, its table there and its bucket in that.

use finespun_types::NodeId;

/// Where the state of an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The object's manager.
    pub node: NodeId,
    /// Which of the manager's tables.
    pub table: u32,
    /// Which of the words beside that table.
    pub word: u32,
}

/// Who manages the object at `address`, in a job of `nodes` nodes with `tables` tables each, and `words` beside each
/// table. All parts of a job must give the same numbers. Objects side by side in an array spread over all nodes, tables and words.
#[inline]
#[must_use]
pub fn place(address: u64, nodes: u32, tables: u32, words: u32) -> Place {
    debug_assert!(nodes <= 64 && tables <= 1 << 16 && words <= 1 << 16, "the parts of the hash are wide enough");
    let hash = mix(address);
    // Each choice takes bits of its own: were the bucket chosen by the node's bits, a node would use few buckets.
    let node = ((hash >> 48) * u64::from(nodes)) >> 16;
    let table = ((hash >> 32 & 0xffff) * u64::from(tables)) >> 16;
    let word = ((hash & 0xffff) * u64::from(words)) >> 16;
    Place { node: NodeId::of(node as usize), table: table as u32, word: word as u32 }
}

/// The bucket of `address` in a table of `buckets`.
pub(crate) fn bucket(address: u64, buckets: usize) -> usize {
    (((mix(address) & 0xffff_ffff) * buckets as u64) >> 32) as usize
}

/// The finalizer of MurmurHash3: every bit of the address reaches every bit of the result.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_spread_evenly_over_nodes_tables_and_buckets() {
        let mut by_node = [0u32; 5];
        let mut by_table = [0u32; 64];
        let mut by_bucket = [0u32; 16];
        let mut by_word = [0u32; 16];
        for i in 0..64_000u64 {
            let address = 0x2000_0000_0000 + 8 * i;
            let place = place(address, 5, 64, 16);
            by_node[place.node.0 as usize] += 1;
            by_table[place.table as usize] += 1;
            if place.node == NodeId(3) && place.table < 8 {
                by_bucket[bucket(address, 16)] += 1;
                by_word[place.word as usize] += 1;
            }
        }
        assert!(by_node.iter().all(|n| (12_000..13_600).contains(n)), "{by_node:?}");
        assert!(by_table.iter().all(|n| (800..1_200).contains(n)), "{by_table:?}");
        assert!(by_bucket.iter().all(|n| (60..140).contains(n)), "{by_bucket:?}");
        assert!(by_word.iter().all(|n| (60..140).contains(n)), "{by_word:?}");
    }
}
