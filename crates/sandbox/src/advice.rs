//! From a failed set-up to what its operator can do about it.

use crate::protocol::{SetupFailure, SetupStep};
use std::fs;

/// The settings of this machine that decide whether a sandbox can be set up. Probing them is not enough to know: a full
/// trial run is. They only explain why it failed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KernelSettings {
    pub max_user_namespaces: Option<u64>,
    pub unprivileged_user_namespaces: Option<u64>,
    pub apparmor_restricts_user_namespaces: Option<u64>,
}

impl KernelSettings {
    pub fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        Self {
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_user_namespaces: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts_user_namespaces: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

const APPARMOR: &str = "AppArmor forbids user namespaces to programs without a profile (the default of Ubuntu 24.04). \
    Install packaging/apparmor/greenroom as /etc/apparmor.d/greenroom and run `apparmor_parser -r` on it";
const CONTAINER: &str = "Inside a container, start it with --security-opt seccomp=unconfined and \
    --security-opt systempaths=unconfined (Podman: --security-opt unmask=ALL)";
const MAX_NAMESPACES: &str = "Allow user namespaces: `sysctl -w user.max_user_namespaces=15000`, and the same line in \
    /etc/sysctl.d";
const UNPRIVILEGED: &str = "Allow user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`, and the same line in \
    /etc/sysctl.d";
const MASKED_PROC: &str = "The kernel refuses a new /proc where parts of the present one are covered. Remove \
    ProtectKernelTunables, ProtectProc and ProcSubset from the systemd unit";
const KERNEL: &str = "Use Linux 5.13 or newer with namespaces, Landlock and seccomp";

pub fn for_failure(failure: &SetupFailure, settings: &KernelSettings) -> Option<String> {
    use SetupStep::{Cgroup, IdMap, Landlock, Loopback, Mounts, Namespaces, Proc, Seccomp};
    let restricted = settings.apparmor_restricts_user_namespaces == Some(1);
    let is_denied = matches!(failure.errno, libc::EPERM | libc::EACCES);
    let advice = match (failure.step, failure.errno) {
        (Namespaces, libc::ENOSPC) => MAX_NAMESPACES.to_owned(),
        (Namespaces, _) if settings.max_user_namespaces == Some(0) => MAX_NAMESPACES.to_owned(),
        (Namespaces, libc::EPERM) if settings.unprivileged_user_namespaces == Some(0) => UNPRIVILEGED.to_owned(),
        (Namespaces, libc::EACCES) => APPARMOR.to_owned(),
        // Ubuntu 24.04 lets the namespace be created and denies what comes after it.
        (Namespaces | IdMap | Mounts | Proc | Loopback, _) if is_denied && restricted => APPARMOR.to_owned(),
        (Namespaces, libc::EPERM) => CONTAINER.to_owned(),
        (Namespaces | Mounts | Landlock | Seccomp, libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => KERNEL.to_owned(),
        (Proc, libc::EPERM) => format!("{MASKED_PROC}. {CONTAINER}"),
        (IdMap, _) if is_denied => format!("{APPARMOR}. {CONTAINER}"),
        (IdMap, libc::EINVAL) => {
            "The user of the sandbox must be in /proc/self/uid_map and /proc/self/gid_map".to_owned()
        }
        (Cgroup, _) => "Delegate a cgroup to the server: Delegate=yes and DelegateSubgroup=server in the systemd unit \
            (systemd 254 or newer)"
            .to_owned(),
        _ => return None,
    };
    Some(advice)
}

#[cfg(test)]
mod tests {
    use super::{APPARMOR, CONTAINER, KernelSettings, MAX_NAMESPACES, UNPRIVILEGED, for_failure};
    use crate::protocol::{SetupFailure, SetupStep};

    fn advice(step: SetupStep, errno: i32, settings: KernelSettings) -> Option<String> {
        for_failure(&SetupFailure { step, what: String::new(), errno }, &settings)
    }

    #[test]
    fn each_known_refusal_has_its_advice() {
        let plain = KernelSettings { max_user_namespaces: Some(15000), ..KernelSettings::default() };
        let debian = KernelSettings { unprivileged_user_namespaces: Some(0), ..plain };
        let ubuntu = KernelSettings { apparmor_restricts_user_namespaces: Some(1), ..plain };
        let off = KernelSettings { max_user_namespaces: Some(0), ..plain };
        let cases = [
            (SetupStep::Namespaces, libc::ENOSPC, plain, MAX_NAMESPACES),
            (SetupStep::Namespaces, libc::EPERM, off, MAX_NAMESPACES),
            (SetupStep::Namespaces, libc::EPERM, debian, UNPRIVILEGED),
            (SetupStep::Namespaces, libc::EACCES, plain, APPARMOR),
            (SetupStep::Namespaces, libc::EPERM, plain, CONTAINER),
            (SetupStep::IdMap, libc::EPERM, ubuntu, APPARMOR),
            (SetupStep::Loopback, libc::EPERM, ubuntu, APPARMOR),
        ];
        for (step, errno, settings, expected) in cases {
            assert_eq!(advice(step, errno, settings).as_deref(), Some(expected), "{step:?} {errno}");
        }
        assert!(advice(SetupStep::Proc, libc::EPERM, plain).is_some_and(|text| text.contains("systempaths")));
    }

    #[test]
    fn an_unknown_failure_has_no_advice() {
        assert_eq!(advice(SetupStep::Folders, libc::ENOENT, KernelSettings::default()), None);
    }
}
