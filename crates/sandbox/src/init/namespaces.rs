//! Enters new namespaces and becomes the user of the sandbox in them.

use super::setup::{DuringSetup as _, SetupResult};
use crate::{
    policy::{BindMount, SandboxPolicy},
    protocol::{HelperStart, SetupFailure, SetupStep},
    sys::fork::{Forked, SingleThread, exit_now, fork},
};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sched::{CloneFlags, unshare},
    sys::{prctl, stat::Mode, wait::waitpid},
    unistd::{Gid, Pid, Uid, getegid, geteuid, getpid, pipe2, read, setgroups, setresgid, setresuid, write},
};
use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// The user and group inside. Not root: some programs refuse to work as root.
pub const GUEST_USER: u32 = 1000;

/// What is mounted from outside, opened before the change of the user: its parents may be private to the server.
pub struct OpenedFolders {
    pub workspace: OwnedFd,
    pub home: Option<OwnedFd>,
    pub programs: Vec<(OwnedFd, PathBuf)>,
}

impl OpenedFolders {
    fn open(policy: &SandboxPolicy) -> SetupResult<Self> {
        let one = |path: &Path| {
            let what = format!("open {}", path.display());
            open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).during(SetupStep::Folders, what)
        };
        let program = |program: &BindMount| Ok((one(&program.source)?, program.target.clone()));
        Ok(Self {
            workspace: one(&policy.workspace)?,
            home: policy.home.as_deref().map(one).transpose()?,
            programs: policy.programs.iter().map(program).collect::<SetupResult<_>>()?,
        })
    }
}

pub fn enter(thread: SingleThread, start: &HelperStart) -> SetupResult<OpenedFolders> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if start.user_namespace {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    match start.host_user.filter(|_| start.user_namespace) {
        Some(user) => enter_as_root(thread, start, flags, user),
        None => enter_as_user(start, flags),
    }
}

fn create(flags: CloneFlags) -> SetupResult<()> {
    unshare(flags).during(SetupStep::Namespaces, "create namespaces")
}

fn enter_as_user(start: &HelperStart, flags: CloneFlags) -> SetupResult<OpenedFolders> {
    let (user, group) = (geteuid(), getegid());
    create(flags)?;
    // A folder that was opened before `unshare` belongs to the old mount namespace and could not be mounted.
    let folders = OpenedFolders::open(&start.policy)?;
    if start.user_namespace {
        fs::write("/proc/self/setgroups", "deny").during(SetupStep::IdMap, "give up group changes")?;
        write_maps("self", user.as_raw(), group.as_raw()).during(SetupStep::IdMap, "map the user")?;
    }
    Ok(folders)
}

/// Root maps another user than its own, which only a process outside of the new namespace may do.
fn enter_as_root(
    thread: SingleThread,
    start: &HelperStart,
    flags: CloneFlags,
    user: u32,
) -> SetupResult<OpenedFolders> {
    let step = SetupStep::IdMap;
    let own = getpid();
    let (created, signal_created) = pipe2(OFlag::O_CLOEXEC).during(step, "create a pipe")?;
    let (mapped, signal_mapped) = pipe2(OFlag::O_CLOEXEC).during(step, "create a pipe")?;
    let mapper = match fork(thread).during(step, "fork")? {
        Forked::Child => {
            drop((signal_created, mapped));
            let answer = match read(&created, &mut [0]) {
                Ok(1) => write_maps(&own.to_string(), user, user).err().map_or(0, |errno| errno as i32),
                _ => libc::EPIPE,
            };
            // If this fails, the process that waits has ended.
            write(&signal_mapped, &answer.to_ne_bytes()).ok();
            exit_now(0)
        }
        Forked::Parent(mapper) => mapper,
    };
    drop((created, signal_mapped));
    create(flags)?;
    let folders = OpenedFolders::open(&start.policy)?;
    write(&signal_created, &[1]).during(step, "ask for the user map")?;
    wait_for_maps(&mapped, mapper)?;
    // Our capabilities inside the new namespace stay: none of these users is root there.
    become_user(GUEST_USER)?;
    prctl::set_dumpable(true).during(step, "stay the owner of our own /proc entry")?;
    Ok(folders)
}

fn wait_for_maps(mapped: &OwnedFd, mapper: Pid) -> SetupResult<()> {
    let mut answer = [0; 4];
    let length = read(mapped, &mut answer).during(SetupStep::IdMap, "wait for the user map")?;
    waitpid(mapper, None).during(SetupStep::IdMap, "wait for the user map")?;
    let errno = if length == answer.len() { i32::from_ne_bytes(answer) } else { libc::EPIPE };
    match errno {
        0 => Ok(()),
        errno => Err(SetupFailure { step: SetupStep::IdMap, what: "map the user".to_owned(), errno }),
    }
}

fn write_maps(process: &str, user: u32, group: u32) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
    fs::write(format!("/proc/{process}/uid_map"), format!("{GUEST_USER} {user} 1\n")).map_err(errno)?;
    fs::write(format!("/proc/{process}/gid_map"), format!("{GUEST_USER} {group} 1\n")).map_err(errno)
}

pub fn become_user(id: u32) -> SetupResult<()> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[]).during(SetupStep::Identity, "leave all groups")?;
    setresgid(group, group, group).during(SetupStep::Identity, format!("change to group {id}"))?;
    setresuid(user, user, user).during(SetupStep::Identity, format!("change to user {id}"))
}
