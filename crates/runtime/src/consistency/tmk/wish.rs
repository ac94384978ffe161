//! When a node wishes for a collection: its diffs or its log take much room.

use std::sync::OnceLock;

use finespun_types::NodeId;

use crate::node::cluster::Cluster;

/// Bytes of its own diffs with which a node wishes for a collection.
const WISH_BYTES: usize = 64 << 20;
/// The same for its log, in hundredths of its room.
const WISH_LOG: usize = 50;

/// Overrides the bytes, for tests and for programs that know better.
const ENV_BYTES: &str = "FINESPUN_TMK_COLLECT";

/// Does this node wish for a collection?
pub fn is_wished(cluster: &Cluster) -> bool {
    static BYTES: OnceLock<usize> = OnceLock::new();
    let of_environment = || std::env::var(ENV_BYTES).ok().and_then(|text| text.parse().ok());
    let bytes = *BYTES.get_or_init(|| of_environment().unwrap_or(WISH_BYTES));
    let node = cluster.mine();
    if node.kept_bytes() >= bytes.max(1) {
        return true;
    }
    let mut known = node.known();
    (0..cluster.shape.nodes).any(|writer| {
        let oldest = known.collected()[writer];
        let intervals = known.knowledge(cluster.me).known[writer].saturating_sub(oldest);
        node.log_used(NodeId::of(writer), intervals) >= WISH_LOG
    })
}
