//! One process per command: parent of the command and adopter of everything that the command leaves behind, so that the
//! broker can tell the processes of one command from those of another.
//!
//! A command can kill or stop its shepherd, since both are the same user. That is why a shepherd only waits: killing is the
//! broker's work, which no command can signal.
//!
//! Two pipes lead to the broker. `start` is closed when the command runs; before that, the command itself writes what
//! happens. `exit` is used if the shepherd outlives its command; else it ends in the same way as the command has.

use super::limits;
use crate::{
    command::{CommandExit, CommandSpec, LeftoverProcesses},
    isolation::IsolationTier,
    policy::GUEST_WORKSPACE,
    protocol::{HelperStart, RunDescriptors},
    sys::{
        descriptors,
        fork::{Forked, SingleThread, exit_now, fork},
        signals, wait,
    },
};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    sys::prctl,
    unistd::{Pid, chdir, execve, getpid, pipe2, setsid, write},
};
use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// What the broker is told, in [`ShepherdReport::BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShepherdReport {
    /// The process that becomes the command.
    Process(Pid),
    /// The program could not be started.
    NotStarted(i32),
    /// The folder could not be entered.
    NoFolder(i32),
    Exited(CommandExit),
}

impl ShepherdReport {
    const BYTES: usize = 8;

    fn encode(self) -> [u8; Self::BYTES] {
        let (kind, value) = match self {
            Self::Process(command) => (1, command.as_raw()),
            Self::NotStarted(errno) => (2, errno),
            Self::NoFolder(errno) => (3, errno),
            Self::Exited(CommandExit::Code(code)) => (4, code),
            Self::Exited(CommandExit::Signal(signal)) => (5, signal),
            Self::Exited(CommandExit::SandboxEnded) => (6, 0),
        };
        let mut bytes = [0; Self::BYTES];
        let (first, second) = bytes.split_at_mut(4);
        first.copy_from_slice(&i32::to_ne_bytes(kind));
        second.copy_from_slice(&i32::to_ne_bytes(value));
        bytes
    }

    fn decode(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let value = i32::from_ne_bytes([e, f, g, h]);
        match i32::from_ne_bytes([a, b, c, d]) {
            1 => Some(Self::Process(Pid::from_raw(value))),
            2 => Some(Self::NotStarted(value)),
            3 => Some(Self::NoFolder(value)),
            4 => Some(Self::Exited(CommandExit::Code(value))),
            5 => Some(Self::Exited(CommandExit::Signal(value))),
            6 => Some(Self::Exited(CommandExit::SandboxEnded)),
            _ => None,
        }
    }

    fn send(self, reports: &OwnedFd) {
        // If this fails, the broker has ended, and we end with it.
        write(reports, &self.encode()).ok();
    }

    /// The next report. `None` at the end, an error of the kind `WouldBlock` if there is none yet.
    pub fn receive(reports: &mut File) -> io::Result<Option<Self>> {
        let mut bytes = [0; Self::BYTES];
        // A pipe hands over what was written at once as a whole.
        match reports.read(&mut bytes)? {
            Self::BYTES => Ok(Self::decode(bytes)),
            _ => Ok(None),
        }
    }
}

/// A running shepherd, as the broker sees it.
pub struct Shepherd {
    pub process: Pid,
    pub start: File,
    pub exit: File,
}

pub fn start(thread: SingleThread, start: &HelperStart, run: RunDescriptors) -> Result<Shepherd, Errno> {
    let flags = OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let ((start_reports, start_end), (exit_reports, exit_end)) = (pipe2(flags)?, pipe2(flags)?);
    match fork(thread)? {
        Forked::Parent(process) => Ok(Shepherd { process, start: start_reports.into(), exit: exit_reports.into() }),
        Forked::Child => {
            let code = shepherd(thread, start, run, [start_end, exit_end]).map_or(1, |()| 0);
            exit_now(code)
        }
    }
}

fn shepherd(
    thread: SingleThread,
    start: &HelperStart,
    run: RunDescriptors,
    reports: [OwnedFd; 2],
) -> Result<(), Errno> {
    let [start_reports, exit_reports] = descriptors::keep_only(run.stdio, reports)?;
    signals::ignore()?;
    prctl::set_child_subreaper(true)?;
    let command = match fork(thread) {
        Ok(Forked::Child) => {
            ShepherdReport::Process(getpid()).send(&start_reports);
            exec(start, &run.command).send(&start_reports);
            exit_now(127)
        }
        Ok(Forked::Parent(command)) => command,
        Err(errno) => {
            ShepherdReport::NotStarted(errno as i32).send(&start_reports);
            return Err(errno);
        }
    };
    drop(start_reports);
    // Who reads the command's output waits for its end, not for ours.
    descriptors::close_standard()?;
    loop {
        match wait::for_any_child(true) {
            Ok(Some((child, exit))) if child == command => match (run.command.leftovers, exit) {
                (LeftoverProcesses::Stay, _) => ShepherdReport::Exited(exit).send(&exit_reports),
                (LeftoverProcesses::End, CommandExit::Code(code)) => exit_now(code),
                (LeftoverProcesses::End, CommandExit::Signal(signal)) => {
                    signals::end_by(signal);
                    return Err(Errno::EINTR);
                }
                (LeftoverProcesses::End, CommandExit::SandboxEnded) => return Err(Errno::ECHILD),
            },
            Ok(_) => {}
            // No children are left.
            Err(_) => return Ok(()),
        }
    }
}

/// Returns only if it fails.
fn exec(start: &HelperStart, command: &CommandSpec) -> ShepherdReport {
    let prepared = setsid().and_then(|_| signals::reset()).and_then(|()| limits::set_cpu(&start.policy.limits));
    if let Err(errno) = prepared {
        return ShepherdReport::NotStarted(errno as i32);
    }
    if let Err(errno) = chdir(&folder(start, &command.folder)) {
        return ShepherdReport::NoFolder(errno as i32);
    }
    ShepherdReport::NotStarted(exec_program(command) as i32)
}

/// Without a mount namespace, the guest path of the project is only a name.
fn folder(start: &HelperStart, folder: &str) -> PathBuf {
    match Path::new(folder).strip_prefix(GUEST_WORKSPACE) {
        Ok(beneath) if start.tier != IsolationTier::Native => start.policy.workspace.join(beneath),
        _ => PathBuf::from(folder),
    }
}

fn exec_program(command: &CommandSpec) -> Errno {
    let argv = command.argv.iter().map(|argument| CString::new(argument.as_str()));
    let env = command.env.iter().map(|(name, value)| CString::new(format!("{name}={value}")));
    let (Ok(argv), Ok(env)) = (argv.collect::<Result<Vec<_>, _>>(), env.collect::<Result<Vec<_>, _>>()) else {
        return Errno::EINVAL;
    };
    let Some(name) = command.argv.first().filter(|name| !name.is_empty()) else { return Errno::ENOENT };
    if name.contains('/') {
        return execve(&argv[0], &argv, &env).err().unwrap_or(Errno::EIO);
    }
    let mut denied = false;
    for folder in command.env.get("PATH").map_or("/usr/bin:/bin", String::as_str).split(':') {
        let Ok(path) = CString::new(format!("{folder}/{name}")) else { return Errno::EINVAL };
        match execve(&path, &argv, &env).err() {
            Some(Errno::ENOENT | Errno::ENOTDIR) => {}
            // As in a shell: another folder may have one that can be started.
            Some(Errno::EACCES) => denied = true,
            other => return other.unwrap_or(Errno::EIO),
        }
    }
    if denied { Errno::EACCES } else { Errno::ENOENT }
}

#[cfg(test)]
mod tests {
    use super::ShepherdReport;
    use crate::CommandExit;
    use nix::unistd::Pid;

    #[test]
    fn reports_survive_the_pipe() {
        let reports = [
            ShepherdReport::Process(Pid::from_raw(7)),
            ShepherdReport::NotStarted(2),
            ShepherdReport::NoFolder(13),
            ShepherdReport::Exited(CommandExit::Code(3)),
            ShepherdReport::Exited(CommandExit::Signal(9)),
        ];
        for report in reports {
            assert_eq!(ShepherdReport::decode(report.encode()), Some(report));
        }
        assert_eq!(ShepherdReport::decode([0; 8]), None);
    }
}
