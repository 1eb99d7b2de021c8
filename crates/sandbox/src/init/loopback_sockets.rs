//! Sockets that are created inside the sandbox's network and used outside of it.

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrStorage, bind, connect, listen, setsockopt,
        socket, sockopt,
    },
};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsRawFd as _, OwnedFd},
};

fn create(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

pub fn listener(port: u16) -> Result<OwnedFd, Errno> {
    let socket = create(AddressFamily::Inet)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)))?;
    listen(&socket, Backlog::new(128)?)?;
    Ok(socket)
}

/// The connection may still be in progress: a service that accepts nothing must not stop the broker.
pub fn connection(port: u16, ipv6: bool) -> Result<OwnedFd, Errno> {
    let (family, address) = match ipv6 {
        false => (AddressFamily::Inet, SockaddrStorage::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))),
        true => (AddressFamily::Inet6, SockaddrStorage::from(SocketAddrV6::new(Ipv6Addr::LOCALHOST, port, 0, 0))),
    };
    let socket = create(family)?;
    match connect(socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}
