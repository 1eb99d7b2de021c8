//! Gives up all capabilities.

use nix::errno::Errno;

/// From linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
const LAST_POSSIBLE: libc::c_ulong = 63;

#[repr(C)]
struct Header {
    version: u32,
    process: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Nothing that is started from now on can get a capability, not even by a file that grants it. Needs CAP_SETPCAP, so
/// call it before the change of the user.
pub fn drop_bounding_set() -> Result<(), Errno> {
    for capability in 0..=LAST_POSSIBLE {
        // SAFETY: takes numbers only.
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            // The kernel does not know this one, nor any after it.
            Err(Errno::EINVAL) => break,
            other => other?,
        };
    }
    Ok(())
}

pub fn drop_all() -> Result<(), Errno> {
    let none: libc::c_ulong = 0;
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: takes numbers only.
    Errno::result(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, none, none, none) })?;
    let header = Header { version: VERSION_3, process: 0 };
    let sets = [Sets::default(); 2];
    // SAFETY: version 3 reads one header and two sets, and both live until the call returns.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) }).map(drop)
}
