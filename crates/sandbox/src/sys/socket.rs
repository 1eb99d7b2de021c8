//! Sends and receives messages with file descriptors.

use nix::{
    errno::Errno,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};
use tokio::io::unix::AsyncFd;

/// For waiting in the server's runtime.
pub fn watch(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what this returns, so it stays open and the same until it is deregistered.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

/// Larger messages are refused by the sender; bodies travel in files in memory.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const MAX_DESCRIPTORS: usize = 8;

pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.is_empty() || bytes.len() > MAX_MESSAGE_BYTES || descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::from(Errno::EMSGSIZE));
    }
    let numbers: Vec<RawFd> = descriptors.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let control = if numbers.is_empty() { &[][..] } else { &rights };
    loop {
        // Without MSG_NOSIGNAL, a helper that has ended would end the server.
        match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// No bytes mean the end of the connection.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; MAX_MESSAGE_BYTES];
    let mut control = nix::cmsg_space!([RawFd; MAX_DESCRIPTORS]);
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    let received = loop {
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut buffers, Some(&mut control), flags) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = message {
            // SAFETY: the kernel has just created these for this process, and nothing else knows them.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let length = received.bytes;
    bytes.truncate(length);
    Ok((bytes, descriptors))
}
