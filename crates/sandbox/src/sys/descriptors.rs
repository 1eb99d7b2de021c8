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
/// the first three descriptors the standard ones and the others the numbers after them, closed by `exec`, and closes all
/// that is left.
pub fn keep_only(stdio: [OwnedFd; 3], kept: [OwnedFd; 2]) -> Result<[OwnedFd; 2], Errno> {
    const FIRST_FREE: RawFd = 5;
    // Copies above all targets first: a target may be the number of one that is still needed.
    let copy = |descriptor: &OwnedFd| nix::fcntl::fcntl(descriptor, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(FIRST_FREE));
    for (target, source) in [0, 1, 2].into_iter().zip(&stdio) {
        // SAFETY: takes numbers only; the standard descriptors have no owner, and the sources are above them.
        Errno::result(unsafe { libc::dup2(source.as_raw_fd(), target) })?;
    }
    let copies = [copy(&kept[0])?, copy(&kept[1])?];
    std::mem::forget((stdio, kept));
    for (target, source) in [3, 4].into_iter().zip(copies) {
        // SAFETY: as above; the owner of the target, if any, is forgotten here or never dropped.
        Errno::result(unsafe { libc::dup3(source, target, libc::O_CLOEXEC) })?;
    }
    close_range(FIRST_FREE, u32::MAX)?;
    // SAFETY: both were just created here, and their former owners are forgotten.
    Ok(unsafe { [OwnedFd::from_raw_fd(3), OwnedFd::from_raw_fd(4)] })
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
