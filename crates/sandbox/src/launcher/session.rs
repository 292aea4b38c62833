//! The namespaces that all commands of a session share. They live as long as the descriptors; no process stays.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::CloneFlags;

use super::{InLayer, LayerResult, encode, namespaces, network};
use crate::control;
use crate::request::{Report, SessionNetwork};

/// Makes the namespaces and sends their descriptors: user; with a shared network also network and listening socket.
pub(crate) fn make(control: &OwnedFd, shared: SessionNetwork) -> LayerResult<()> {
    let others = match shared {
        SessionNetwork::PerCommand => CloneFlags::empty(),
        SessionNetwork::Shared => CloneFlags::CLONE_NEWNET,
    };
    namespaces::enter_new_user_namespace(others)?;
    let mut descriptors = vec![open_namespace("user")?];
    if shared == SessionNetwork::Shared {
        network::bring_loopback_up().in_layer("loopback device")?;
        descriptors.push(open_namespace("net")?);
        descriptors.push(network::listen().in_layer("socket of the proxy")?);
    }
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let data = encode(&Report::Session).in_layer("namespaces of the session")?;
    control::send(control, &data, &borrowed).in_layer("namespaces of the session")
}

fn open_namespace(name: &str) -> LayerResult<OwnedFd> {
    File::open(format!("/proc/self/ns/{name}")).map(OwnedFd::from).in_layer("namespaces of the session")
}
