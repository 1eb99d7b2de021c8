//! The helper's first process, outside of the sandbox: it ends the sandbox when the server ends or asks for it.

use super::{
    broker, children, confine, namespaces,
    setup::{DuringSetup as _, SetupResult},
};
use crate::{
    isolation::IsolationTier,
    protocol::{self, HelperReport, HelperStart, SetupStep},
    sys::{
        descriptors,
        fork::{Forked, SingleThread, exit_now, fork},
        signals,
    },
};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::{Pid, pipe2, setsid},
};
use std::{
    fs,
    os::fd::{AsFd as _, OwnedFd},
    process::ExitCode,
};

pub fn run(thread: SingleThread, start: &HelperStart, socket: OwnedFd, lifeline: OwnedFd) -> ExitCode {
    let broker = match start_broker(thread, start, &socket) {
        Ok(broker) => broker,
        Err(failure) => {
            // If this fails too, the server has ended.
            protocol::send(socket.as_fd(), &HelperReport::SetupFailed(failure), &[]).ok();
            return ExitCode::FAILURE;
        }
    };
    // From now on only the broker has the socket: its end is the end of the connection.
    drop(socket);
    if wait_for_end(broker.process, &lifeline).is_err() {
        kill(broker.process, Signal::SIGKILL).ok();
    }
    // The kernel kills what is left in a process namespace when its pid 1 ends, and reports that end afterwards.
    waitpid(broker.process, None).ok();
    if start.tier != IsolationTier::Native {
        children::kill_all();
    }
    ExitCode::SUCCESS
}

struct StartedBroker {
    process: Pid,
    /// Closed when this process ends, however that happens: the broker then ends too.
    _alive: OwnedFd,
}

fn start_broker(thread: SingleThread, start: &HelperStart, socket: &OwnedFd) -> SetupResult<StartedBroker> {
    let step = SetupStep::Broker;
    // Not called `greenroom` in the process list: killing all processes of that name lets the supervisors clean up.
    prctl::set_name(c"gr-sandbox").during(step, "set the process name")?;
    // Detaches from the terminal and from signals to the server's process group.
    setsid().during(step, "start a session")?;
    signals::ignore().during(step, "ignore signals")?;
    prctl::set_child_subreaper(true).during(step, "adopt orphans")?;
    if let Some(cgroup) = &start.cgroup {
        fs::write(cgroup.join("cgroup.procs"), "0").during(SetupStep::Cgroup, "enter the cgroup")?;
    }
    let folders = match start.tier {
        IsolationTier::Native => Some(namespaces::enter(thread, start)?),
        _ => None,
    };
    let (supervisor_end, alive) = pipe2(OFlag::O_CLOEXEC).during(step, "create a pipe")?;
    match fork(thread).during(step, "fork")? {
        Forked::Parent(process) => Ok(StartedBroker { process, _alive: alive }),
        Forked::Child => {
            drop(alive);
            match confine::enter(start, folders) {
                Ok(facts) => broker::run(thread, start, facts, socket, supervisor_end),
                Err(failure) => {
                    protocol::send(socket.as_fd(), &HelperReport::SetupFailed(failure), &[]).ok();
                    exit_now(1)
                }
            }
        }
    }
}

/// Returns when the broker has ended, or has been killed because the lifeline is closed.
fn wait_for_end(broker: Pid, lifeline: &OwnedFd) -> Result<(), Errno> {
    let process = descriptors::open_process(broker)?;
    loop {
        let mut watched =
            [PollFd::new(process.as_fd(), PollFlags::POLLIN), PollFd::new(lifeline.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        let happened = |index: usize| watched[index].any().unwrap_or(true);
        if happened(1) {
            return kill(broker, Signal::SIGKILL);
        }
        if happened(0) {
            return Ok(());
        }
    }
}
