//! All processes of a job run one build of the program.

use std::sync::atomic::Ordering;

use finespun_errors::Code;
use finespun_sys::process::{Program, fnv1a};
use finespun_types::NodeId;

use crate::messages::wire::Request;
use crate::node::cluster::Cluster;
use crate::node::failure::Failure;
use crate::sync::requests;

/// Is this the build that the others run? Node 0 remembers that of the first process.
pub fn check(cluster: &Cluster, slot: usize, program: &Program) -> Result<(), Failure> {
    let build = build_hash(&program.build_id);
    let keeper = NodeId(0);
    let first = if cluster.reach.runs_tables_of(keeper) {
        remember(cluster, build)
    } else {
        let request = Request::Build { who: cluster.processor_at(slot), build };
        requests::ask(cluster, cluster.slot(slot), keeper, request)?.0
    };
    if first == build {
        return Ok(());
    }
    let what =
        format!("node {} runs another build of the program than node 0 (build {})", cluster.me.0, program.build_id);
    Err(Failure { code: Code::Builds, what })
}

/// The build of the first process of the job that came, at node 0.
pub fn remember(cluster: &Cluster, build: u64) -> u64 {
    let first = &cluster.at(NodeId(0)).node().build;
    match first.compare_exchange(0, build, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => build,
        Err(first) => first,
    }
}

/// Never 0, which stands for no build.
fn build_hash(build: &str) -> u64 {
    fnv1a(build.as_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_build_has_the_number_that_stands_for_none() {
        assert!(["", "1f", "a build"].iter().all(|build| build_hash(build) != 0));
        assert_ne!(build_hash("1f"), build_hash("f1"));
    }
}
