//! The system calls that no command may make.
//!
//! A list of what is denied, not of what is allowed: programs of all kinds run here, and the list below is what leads out of
//! a sandbox or into rarely used parts of the kernel.

use crate::protocol::{SetupFailure, SetupStep};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

const MOUNTS: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];
const NAMESPACES: &[i64] = &[libc::SYS_unshare, libc::SYS_setns];
const OTHER_PROCESSES: &[i64] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_pidfd_getfd, libc::SYS_kcmp];
const KERNEL: &[i64] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
];
const MACHINE: &[i64] = &[
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];
#[cfg(target_arch = "x86_64")]
const PROCESSOR: &[i64] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const PROCESSOR: &[i64] = &[];

/// A network namespace does not confine AF_VSOCK, AF_ALG and others, so only these families are allowed.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
const NEW_NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// TIOCSTI and TIOCLINUX, which type into the terminal of another process. Their type in `libc` depends on the C library.
const TERMINAL_INPUT: &[u64] = &[0x5412, 0x541C];

/// Files with these bits in the project's folder would lend the rights of their owner, who may be the server's user, to other
/// users of the machine. Each call with the number of its argument that has the mode.
const SETUID_BITS: &[u64] = &[libc::S_ISUID as u64, libc::S_ISGID as u64];
const CHANGE_MODE: &[(i64, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const CHANGE_MODE_BY_PATH: &[(i64, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_mknod, 1), (libc::SYS_creat, 1)];
#[cfg(not(target_arch = "x86_64"))]
const CHANGE_MODE_BY_PATH: &[(i64, u8)] = &[];
/// The same on all processors; `libc` has it for some C libraries only.
const FCHMODAT2: i64 = 452;
/// The mode counts only if a file is created. Each call with the numbers of its flags and mode.
#[cfg(target_arch = "x86_64")]
const OPEN: &[(i64, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
const OPEN: &[(i64, u8, u8)] = &[(libc::SYS_openat, 2, 3)];
/// The bit of O_TMPFILE that O_DIRECTORY does not have.
const CREATING_FLAGS: &[u64] = &[libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SocketRule {
    /// Behind a network namespace.
    KnownFamilies,
    /// Without namespaces: a socket would reach this machine's services, and Landlock does not guard those with a path.
    NoSockets,
}

pub fn apply(sockets: SocketRule) -> Result<(), SetupFailure> {
    let programs = deny_list(sockets).map(|denied| [not_implemented(), denied]);
    let applied = programs.and_then(|programs| {
        programs.iter().try_for_each(|program| apply_filter(program).map_err(|error| error.to_string()))
    });
    applied.map_err(|error| SetupFailure {
        step: SetupStep::Seccomp,
        what: format!("apply the seccomp filter ({error})"),
        errno: libc::EINVAL,
    })
}

fn deny_list(sockets: SocketRule) -> Result<BpfProgram, String> {
    let always = [MOUNTS, NAMESPACES, OTHER_PROCESSES, KERNEL, MACHINE, PROCESSOR].concat();
    let mut rules: Rules = always.into_iter().map(|call| (call, Vec::new())).collect();
    let flags = NEW_NAMESPACES.iter().map(|flag| *flag as u32 as u64);
    let clone =
        flags.map(|flag| rule(vec![condition(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?]));
    rules.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);
    let input =
        TERMINAL_INPUT.iter().map(|call| rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *call)?]));
    rules.insert(libc::SYS_ioctl, input.collect::<Result<_, _>>()?);
    let not = |family: &i32| condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *family as u32 as u64);
    let socket = match sockets {
        SocketRule::KnownFamilies => vec![rule(FAMILIES.iter().map(not).collect::<Result<_, _>>()?)?],
        SocketRule::NoSockets => Vec::new(),
    };
    rules.insert(libc::SYS_socket, socket);
    rules.insert(libc::SYS_socketpair, vec![rule(vec![not(&libc::AF_UNIX)?])?]);
    for (call, mode) in CHANGE_MODE.iter().chain(CHANGE_MODE_BY_PATH) {
        let bits = SETUID_BITS.iter().map(|bit| rule(vec![has_bit(*mode, *bit)?]));
        rules.insert(*call, bits.collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPEN {
        let mut creating = Vec::new();
        for flag in CREATING_FLAGS {
            for bit in SETUID_BITS {
                creating.push(rule(vec![has_bit(*flags, *flag)?, has_bit(*mode, *bit)?])?);
            }
        }
        rules.insert(*call, creating);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture()).map_err(text)?;
    filter.try_into().map_err(text)
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, length, compare, value).map_err(text)
}

fn has_bit(argument: u8, bit: u64) -> Result<SeccompCondition, String> {
    condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(text)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn architecture() -> TargetArch {
    if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 }
}

/// Calls that look as if the kernel did not have them. The flags of clone3 and the mode of openat2 are behind a pointer, where
/// no filter sees them; programs then use clone and openat. The x32 calls of x86-64 have other numbers and would bypass the list.
fn not_implemented() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The number of the call is the first field of the data.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_EQUAL, 2, 0, libc::SYS_clone3 as u32),
        instruction(JUMP_EQUAL, 1, 0, libc::SYS_openat2 as u32),
        instruction(JUMP_AT_LEAST, 0, 1, X32),
        instruction(RETURN, 0, 0, ERROR | libc::ENOSYS as u32),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::{SocketRule, deny_list};

    #[test]
    fn the_filters_can_be_compiled() {
        let (strict, usual) =
            (deny_list(SocketRule::NoSockets).unwrap(), deny_list(SocketRule::KnownFamilies).unwrap());
        assert!(strict.len() > 50 && usual.len() > strict.len());
    }
}
