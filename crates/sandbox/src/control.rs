//! The socket between the process that starts a command and the launcher: messages with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Largest message.
const MAX_MESSAGE: usize = 16 << 10;
/// Largest number of descriptors with a message.
const MAX_DESCRIPTORS: usize = 4;

/// A message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) data: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Makes both ends of a socket that keeps the boundaries of messages.
pub(crate) fn make_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message. An end that is gone is an error, not a signal.
pub(crate) fn send(socket: impl AsFd, data: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(data)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; `None` if the other end is gone.
pub(crate) fn receive(socket: impl AsFd, flags: RecvFlags) -> io::Result<Option<Message>> {
    let mut data = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(&mut data)];
    let received = match recvmsg(socket, &mut buffers, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC) {
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        received => received?,
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    data.truncate(received.bytes);
    Ok((received.bytes > 0).then_some(Message { data, descriptors }))
}
