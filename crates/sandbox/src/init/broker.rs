//! Pid 1 of the sandbox: starts, signals and kills commands for the server.
//!
//! No process inside can signal or read it. It never waits for one of them: everything it does returns at once.

use super::{
    children, loopback_sockets, process_counts,
    shepherd::{self, Shepherd, ShepherdReport},
};
use crate::{
    command::{CommandExit, CommandUsage},
    isolation::IsolationTier,
    protocol::{self, BrokerRequest, HelperFacts, HelperReport, HelperStart, RunDescriptors},
    sys::{
        descriptors,
        fork::{SingleThread, exit_now},
    },
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigSet, Signal, kill, killpg},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

/// How often to kill again while processes are left; their ends usually wake the broker earlier.
const SWEEP_PAUSE_MILLISECONDS: u8 = 5;
/// Processes that fork faster than they are killed end with the whole sandbox, within the two seconds of invariant 5.
const SWEEP_TIMEOUT: Duration = Duration::from_millis(1500);

pub fn run(thread: SingleThread, start: &HelperStart, facts: HelperFacts, socket: &OwnedFd, supervisor: OwnedFd) -> ! {
    let ended = prctl::set_name(c"gr-broker").map_err(io::Error::from).and_then(|()| {
        // Pid 1 of a namespace adopts orphans anyway; without a namespace they would go to the supervisor.
        prctl::set_child_subreaper(true)?;
        let signals = child_signals()?;
        protocol::send(socket.as_fd(), &HelperReport::Ready(facts), &[])?;
        let mut broker = Broker { thread, start, socket, signals, supervisor, commands: BTreeMap::new(), sweep: None };
        broker.serve()
    });
    // In a namespace the kernel does that.
    if start.tier != IsolationTier::Native {
        children::kill_all();
    }
    exit_now(i32::from(ended.is_err()))
}

fn child_signals() -> io::Result<SignalFd> {
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    children.thread_block()?;
    Ok(SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

struct Broker<'a> {
    thread: SingleThread,
    start: &'a HelperStart,
    socket: &'a OwnedFd,
    signals: SignalFd,
    supervisor: OwnedFd,
    commands: BTreeMap<u64, HeldCommand>,
    /// While processes are being killed whose shepherd has ended: when the last of these shepherds ended.
    sweep: Option<Instant>,
}

struct HeldCommand {
    shepherd: Shepherd,
    /// Its process, while that exists: a number can be reused afterwards.
    process: Option<Pid>,
    stage: CommandStage,
    /// The shepherd has ended, and what it leaves is being killed.
    is_ending: bool,
    exit: Option<CommandExit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandStage {
    /// Its end of the pipe `start` is still open.
    Starting,
    Started,
    Failed,
}

impl Broker<'_> {
    /// Returns when the server or the supervisor has ended.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let woken = self.wait()?;
            if woken.supervisor_ended {
                return Ok(());
            }
            if woken.child_ended {
                while let Ok(Some(_)) = self.signals.read_signal() {}
            }
            let ids: Vec<u64> = self.commands.keys().copied().collect();
            for id in ids {
                self.read_reports(id)?;
            }
            self.reap()?;
            self.sweep()?;
            if woken.has_request && !self.answer()? {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> io::Result<Woken> {
        let mut watched = vec![
            PollFd::new(self.supervisor.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        let living = || self.commands.values().filter(|command| !command.is_ending);
        let starting = living().filter(|command| command.stage == CommandStage::Starting);
        // No events: only the end of this pipe is of interest.
        watched.extend(starting.map(|command| PollFd::new(command.shepherd.start.as_fd(), PollFlags::empty())));
        let running = living().filter(|command| command.exit.is_none());
        watched.extend(running.map(|command| PollFd::new(command.shepherd.exit.as_fd(), PollFlags::POLLIN)));
        let timeout = match self.sweep {
            Some(_) => PollTimeout::from(SWEEP_PAUSE_MILLISECONDS),
            None => PollTimeout::NONE,
        };
        match poll(&mut watched, timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Woken::default()),
            Err(errno) => return Err(errno.into()),
        }
        let happened = |index: usize| watched[index].any().unwrap_or(true);
        Ok(Woken { supervisor_ended: happened(0), has_request: happened(1), child_ended: happened(2) })
    }

    fn report(&self, report: &HelperReport, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        protocol::send(self.socket.as_fd(), report, descriptors)
    }

    /// Returns false when the server has ended.
    fn answer(&mut self) -> io::Result<bool> {
        let Some((request, received)) = protocol::receive::<BrokerRequest>(self.socket.as_fd())? else {
            return Ok(false);
        };
        match request {
            BrokerRequest::Run { id } => self.run(id, received)?,
            BrokerRequest::Signal { command, signal } => self.signal(command, signal),
            BrokerRequest::Kill { command } => self.kill(command),
            BrokerRequest::Listen { id, port } => self.send_socket(id, loopback_sockets::listener(port))?,
            BrokerRequest::Connect { id, port, ipv6 } => {
                self.send_socket(id, loopback_sockets::connection(port, ipv6))?;
            }
            BrokerRequest::List { id } => {
                let commands = self.usage();
                self.report(&HelperReport::Listing { id, commands }, &[])?;
            }
        }
        Ok(true)
    }

    fn run(&mut self, id: u64, received: Vec<OwnedFd>) -> io::Result<()> {
        let started = RunDescriptors::take(received)
            .and_then(|run| shepherd::start(self.thread, self.start, run).map_err(io::Error::from));
        match started {
            Ok(shepherd) => {
                let stage = CommandStage::Starting;
                self.commands.insert(id, HeldCommand { shepherd, process: None, stage, is_ending: false, exit: None });
                Ok(())
            }
            Err(error) => {
                let (errno, what) = (error.raw_os_error().unwrap_or(libc::EIO), String::new());
                self.report(&HelperReport::NotStarted { id, errno, what }, &[])
            }
        }
    }

    /// A command that has ended by now gets no signal, and that is not an error.
    fn signal(&self, command: u64, signal: i32) {
        let process = self.commands.get(&command).and_then(|held| held.process);
        if let (Some(process), Ok(signal)) = (process, Signal::try_from(signal)) {
            killpg(process, signal).ok();
        }
    }

    /// The command's processes become ours, and `sweep` kills them.
    fn kill(&self, command: u64) {
        if let Some(held) = self.commands.get(&command).filter(|held| !held.is_ending) {
            kill(held.shepherd.process, Signal::SIGKILL).ok();
        }
    }

    fn send_socket(&self, id: u64, socket: Result<OwnedFd, Errno>) -> io::Result<()> {
        match socket {
            Ok(socket) => self.report(&HelperReport::Socket { id }, &[socket.as_fd()]),
            Err(errno) => self.report(&HelperReport::NoSocket { id, errno: errno as i32 }, &[]),
        }
    }

    fn read_reports(&mut self, id: u64) -> io::Result<()> {
        let Some(held) = self.commands.get_mut(&id) else { return Ok(()) };
        if held.stage == CommandStage::Starting {
            loop {
                match ShepherdReport::receive(&mut held.shepherd.start) {
                    Ok(Some(ShepherdReport::Process(process))) => held.process = Some(process),
                    Ok(Some(ShepherdReport::NotStarted(errno))) => return self.not_started(id, errno, ""),
                    Ok(Some(ShepherdReport::NoFolder(errno))) => return self.not_started(id, errno, "folder"),
                    // Closed without a failure: the program runs.
                    Ok(Some(ShepherdReport::Exited(_)) | None) => return self.started(id),
                    Err(_) => return Ok(()),
                }
            }
        }
        if let Ok(Some(ShepherdReport::Exited(exit))) = ShepherdReport::receive(&mut held.shepherd.exit) {
            self.exited(id, exit)?;
        }
        Ok(())
    }

    fn started(&mut self, id: u64) -> io::Result<()> {
        let Some(held) = self.commands.get_mut(&id) else { return Ok(()) };
        let Some(process) = held.process else { return self.not_started(id, libc::ECHILD, "") };
        held.stage = CommandStage::Started;
        let opened = descriptors::open_process(process).ok();
        let opened: Vec<BorrowedFd<'_>> = opened.iter().map(|process| process.as_fd()).collect();
        self.report(&HelperReport::Started { id }, &opened)
    }

    fn not_started(&mut self, id: u64, errno: i32, what: &str) -> io::Result<()> {
        if let Some(held) = self.commands.get_mut(&id) {
            (held.stage, held.process) = (CommandStage::Failed, None);
        }
        self.report(&HelperReport::NotStarted { id, errno, what: what.to_owned() }, &[])
    }

    fn exited(&mut self, id: u64, exit: CommandExit) -> io::Result<()> {
        let Some(held) = self.commands.get_mut(&id) else { return Ok(()) };
        (held.exit, held.process) = (Some(exit), None);
        self.report(&HelperReport::Exited { command: id, exit }, &[])
    }

    fn reap(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        children::reap(|process, exit| ended.push((process, exit)));
        for (process, exit) in ended {
            let held = self.commands.iter().find(|(_, held)| !held.is_ending && held.shepherd.process == process);
            let Some(id) = held.map(|(id, _)| *id) else { continue };
            // What was reported before its end.
            self.read_reports(id)?;
            let Some(held) = self.commands.get_mut(&id) else { continue };
            (held.is_ending, held.process) = (true, None);
            self.sweep = Some(Instant::now());
            match (held.stage, held.exit) {
                // Killed before its program ran.
                (CommandStage::Starting, _) => self.not_started(id, libc::ECHILD, "")?,
                (CommandStage::Started, None) => self.exited(id, exit)?,
                (CommandStage::Started, Some(_)) | (CommandStage::Failed, _) => {}
            }
        }
        Ok(())
    }

    /// Kills the processes whose shepherd has ended: they, and nothing else but shepherds, are our children.
    fn sweep(&mut self) -> io::Result<()> {
        let Some(since) = self.sweep else { return Ok(()) };
        let shepherds = self.commands.values().filter(|held| !held.is_ending).map(|held| held.shepherd.process);
        let shepherds: Vec<Pid> = shepherds.collect();
        let orphans = children::list()?.into_iter().filter(|child| !shepherds.contains(child));
        let mut is_clean = true;
        for orphan in orphans {
            is_clean = false;
            kill(orphan, Signal::SIGKILL).ok();
        }
        if !is_clean {
            return match since.elapsed() < SWEEP_TIMEOUT {
                true => Ok(()),
                false => Err(io::Error::other("processes cannot be killed")),
            };
        }
        self.sweep = None;
        let gone = self.commands.extract_if(.., |_, held| held.is_ending).map(|(id, _)| id).collect::<Vec<_>>();
        gone.into_iter().try_for_each(|command| self.report(&HelperReport::Gone { command }, &[]))
    }

    fn usage(&self) -> Vec<CommandUsage> {
        // What could not be started is not a command, even if its shepherd still exists.
        let commands = || self.commands.iter().filter(|(_, held)| held.stage != CommandStage::Failed);
        let shepherds: BTreeMap<i32, u64> =
            commands().map(|(id, held)| (held.shepherd.process.as_raw(), *id)).collect();
        let counts = process_counts::beneath(&shepherds, &process_counts::parents());
        let usage = |(id, held): (&u64, &HeldCommand)| CommandUsage {
            id: *id,
            processes: counts.get(id).copied().unwrap_or(0),
            is_running: held.exit.is_none(),
        };
        commands().map(usage).collect()
    }
}

#[derive(Default)]
struct Woken {
    supervisor_ended: bool,
    has_request: bool,
    child_ended: bool,
}
