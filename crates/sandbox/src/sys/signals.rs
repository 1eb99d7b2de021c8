//! Signal handling of forked children.

use nix::{
    errno::Errno,
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask},
};

fn set_all(handler: SigHandler, except: &[Signal]) -> Result<(), Errno> {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    let fixed = [Signal::SIGKILL, Signal::SIGSTOP];
    for signal in Signal::iterator().filter(|signal| !fixed.contains(signal) && !except.contains(signal)) {
        // SAFETY: the handlers are the default and "ignore": no code of ours runs inside a signal.
        unsafe { sigaction(signal, &action) }?;
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// As a program expects them when it starts. The Rust runtime ignores SIGPIPE, and that would be inherited.
pub fn reset() -> Result<(), Errno> {
    set_all(SigHandler::SigDfl, &[])
}

/// Ignores what can be ignored, except the end of children, which would then not be reported.
pub fn ignore() -> Result<(), Errno> {
    set_all(SigHandler::SigIgn, &[Signal::SIGCHLD])
}
