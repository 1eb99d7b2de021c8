//! Switches the loopback interface of a new network namespace on.

use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};
use std::os::fd::AsRawFd as _;

pub fn switch_on() -> Result<(), Errno> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *target = *letter as libc::c_char;
    }
    // The kernel adds an address by itself when the interface comes up.
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is valid for the call, and SIOCSIFFLAGS reads name and flags of it.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }).map(drop)
}
