//! The Landlock rules. In the native tier they repeat what the mounts already enforce, and close what mounts cannot:
//! writing to the memory of another command by `/proc`, for instance.

use crate::{
    policy::{GUEST_HOME, GUEST_WORKSPACE, SandboxPolicy},
    protocol::{SetupFailure, SetupStep},
};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// The rules are made for this version; an older kernel enforces what it knows.
const TARGET: ABI = ABI::V6;
/// Without namespaces, an older version leaves signals and abstract sockets open.
const MINIMUM_ALONE: u32 = 6;
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/passwd",
    "/etc/group",
    "/etc/ssl",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/nix/store",
    "/gnu/store",
    "/proc",
];

/// Inside namespaces. Returns the version that the kernel enforces, 0 without Landlock.
pub fn apply() -> Result<u32, SetupFailure> {
    let writable = [GUEST_WORKSPACE, GUEST_HOME, "/tmp", "/dev/shm", "/dev/pts"].map(PathBuf::from);
    // TCP rules are left out: the network namespace does that, and dev servers inside must be able to listen.
    restrict(&[Path::new("/")], &writable, false).map_err(|error| failure(&error))
}

/// Without namespaces: the only thing between a command and the machine.
pub fn apply_alone(policy: &SandboxPolicy) -> Result<u32, SetupFailure> {
    let programs = policy.programs.iter().map(|program| program.source.as_path());
    let readable: Vec<&Path> = SYSTEM.iter().map(Path::new).chain(programs).collect();
    let writable: Vec<PathBuf> = [Some(policy.workspace.clone()), policy.home.clone()].into_iter().flatten().collect();
    let version = restrict(&readable, &writable, true).map_err(|error| failure(&error))?;
    match version >= MINIMUM_ALONE {
        true => Ok(version),
        false => {
            let what = format!("use Landlock alone, which needs version {MINIMUM_ALONE}; this kernel has {version}");
            Err(SetupFailure { step: SetupStep::Landlock, what, errno: libc::EOPNOTSUPP })
        }
    }
}

fn restrict(readable: &[&Path], writable: &[PathBuf], without_network: bool) -> Result<u32, RulesetError> {
    let all: BitFlags<AccessFs> = AccessFs::from_all(TARGET);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if without_network {
        rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let status = rules
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(TARGET)))?
        .add_rules(path_beneath_rules(writable, all))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .restrict_self()?;
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    match status.ruleset {
        RulesetStatus::NotEnforced => Ok(0),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(u32::try_from(version).unwrap_or(0)),
    }
}

fn failure(error: &RulesetError) -> SetupFailure {
    SetupFailure { step: SetupStep::Landlock, what: format!("apply Landlock ({error})"), errno: libc::EINVAL }
}
