//! File descriptors by number, in a process that was just started or forked.

use nix::errno::Errno;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

fn close_range(first: RawFd, last: u32) -> Result<(), Errno> {
    let first = u32::try_from(first).map_err(|_| Errno::EBADF)?;
    // SAFETY: takes numbers only. The callers below say why nothing uses the closed descriptors.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Closes all file descriptors that the program was started with, except the standard ones. Call it first in `main`,
/// before anything owns a descriptor.
pub fn close_inherited() -> Result<(), Errno> {
    close_range(3, u32::MAX)
}

/// In a forked child that ends by `exec` or `exit_now`, so that no owner of a closed descriptor is ever dropped: makes
/// the three descriptors the standard ones, `kept` number 3, closed by `exec`, and closes all others.
pub fn keep_only(stdio: [OwnedFd; 3], kept: OwnedFd) -> Result<OwnedFd, Errno> {
    // The standard descriptors are open since the start of the helper, so all of these are above them.
    let sources = [stdio[0].as_raw_fd(), stdio[1].as_raw_fd(), stdio[2].as_raw_fd(), kept.as_raw_fd()];
    if sources.iter().any(|source| *source < 3) {
        return Err(Errno::EBADF);
    }
    // `kept` may have to move to a number that one of the others has: those are copied first.
    for (target, source) in [0, 1, 2].into_iter().zip(sources) {
        // SAFETY: takes numbers only; the standard descriptors have no owner.
        Errno::result(unsafe { libc::dup2(source, target) })?;
    }
    if sources[3] != 3 {
        // SAFETY: as above; the owner of number 3, if any, is forgotten below or never dropped.
        Errno::result(unsafe { libc::dup3(sources[3], 3, libc::O_CLOEXEC) })?;
    }
    std::mem::forget((stdio, kept));
    close_range(4, u32::MAX)?;
    // SAFETY: number 3 was just created here, and its former owners are forgotten.
    Ok(unsafe { OwnedFd::from_raw_fd(3) })
}

/// Gives the standard descriptors up, so that this process does not keep the pipes of a command open. For a process that
/// never reads or prints.
pub fn close_standard() -> Result<(), Errno> {
    close_range(0, 2)
}

/// A descriptor that refers to a process, whatever happens to its number.
pub fn open_process(id: nix::unistd::Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    let opened = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, id.as_raw(), 0) })?;
    let opened = RawFd::try_from(opened).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just created it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// Moves our own copy of stdin to a number above the standard ones and puts `/dev/null` in its place.
pub fn take_stdin() -> Result<OwnedFd, Errno> {
    // SAFETY: stdin is open: the helper was started with a socket there.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    let moved = nix::fcntl::fcntl(stdin, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(3))?;
    // SAFETY: the kernel has just created it for this process.
    let moved = unsafe { OwnedFd::from_raw_fd(moved) };
    let null = nix::fcntl::open("/dev/null", nix::fcntl::OFlag::O_RDWR, nix::sys::stat::Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    Ok(moved)
}
