//! What an arriving message is for: the one place below which stands everything that other nodes can ask.

use finespun_types::NodeId;

use crate::consistency;
use crate::consistency::along::{self, Told};
use crate::messages::wire::{self, Packet, Request};
use crate::node::cluster::Cluster;
use crate::node::misuse;
use crate::process::builds;
use crate::sync::{commands, locks, memory, objects, requests, threads};

/// Hands a message of another node to the module that it is for.
pub fn message(cluster: &Cluster, from: NodeId, message: &[u8]) {
    let Some(packet) = wire::parse(message) else { misuse::malformed_message(cluster, from) };
    match packet {
        Packet::Letter(letter) => consistency::receive(cluster, from, letter),
        Packet::Joined(letters) => consistency::receive_joined(cluster, from, letters),
        Packet::Request { request, along } => {
            let told = along::take_request(cluster, from, &request, along);
            serve_request(cluster, request, &told);
        }
        Packet::Reply { who, reply, about, contents } => {
            along::take_reply(cluster, from, reply, about, contents);
            requests::answer_here(cluster, who, reply, contents);
        }
    }
}

fn serve_request(cluster: &Cluster, request: Request, told: &Told) {
    match request {
        Request::Object { who, event } => objects::serve(cluster, who, event, told),
        Request::Migratory { mutex, message } => locks::receive(cluster, mutex, message),
        Request::Thread { who, event } => threads::serve(cluster, who, event),
        Request::Start { who, function, argument, thread } => commands::run(cluster, who, (function, argument), thread),
        Request::Build { who, build } => requests::answer(cluster, who, Ok((builds::remember(cluster, build), 0))),
        Request::Stop => threads::stop_here(cluster),
        Request::Heap { who, call, arguments } => memory::serve(cluster, who, call, arguments),
        Request::Touched { who, start, end } => memory::serve_touched(cluster, who, start..end),
    }
}
