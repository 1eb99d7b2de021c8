//! `mount_setattr`, which makes a whole tree of mounts read-only at once.

use nix::errno::Errno;
use std::{ffi::CString, os::unix::ffi::OsStrExt as _, path::Path};

// From linux/mount.h; `libc` has them for glibc only.
pub const READ_ONLY: u64 = 0x1;
pub const NO_SETUID: u64 = 0x2;
pub const NO_DEVICES: u64 = 0x4;
pub const NO_EXEC: u64 = 0x8;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes to the mount at `path` and, if `recursive`, to all mounts beneath it.
pub fn set_attributes(path: &Path, attributes: u64, recursive: bool) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    let attributes = MountAttributes { set: attributes, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers are valid for the call, and the size is that of the structure.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    Errno::result(done).map(drop)
}
