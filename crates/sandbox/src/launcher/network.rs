//! The network namespace of a command: a loopback device, and the socket on which the proxy accepts. The socket is made
//! inside and accepted on outside, so that nothing has to carry bytes between the two networks.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{InLayer, LayerResult};
use crate::proxy::PORT;
use crate::request::{Backend, NetworkSetup};
use crate::sys;

/// Sets the network namespace up and returns the listening socket of the proxy, if there is one.
pub(crate) fn prepare(backend: Backend, setup: NetworkSetup) -> LayerResult<Option<OwnedFd>> {
    // bwrap has brought the device up.
    if setup != NetworkSetup::Shared && backend == Backend::Launcher {
        bring_loopback_up().in_layer("loopback device")?;
    }
    match setup {
        NetworkSetup::Shared | NetworkSetup::Loopback => Ok(None),
        NetworkSetup::LoopbackWithListener => listen().map(Some).in_layer("socket of the proxy"),
    }
}

pub(crate) fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::bring_loopback_up(&socket)
}

pub(crate) fn listen() -> io::Result<OwnedFd> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?.into())
}
