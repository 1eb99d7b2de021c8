//! Signal handling of forked children.

use nix::{
    errno::Errno,
    sys::signal::{SigSet, SigmaskHow, sigprocmask},
};

/// Real-time signals included.
const LAST: i32 = 64;

fn set_all(handler: libc::sighandler_t, except: &[i32]) -> Result<(), Errno> {
    for signal in (1..=LAST).filter(|signal| !except.contains(signal)) {
        // Refused for SIGKILL, SIGSTOP, and two that belong to the C library.
        // SAFETY: the handlers are the default and "ignore": no code of ours runs inside a signal.
        unsafe { libc::signal(signal, handler) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// As a program expects them when it starts. The Rust runtime ignores SIGPIPE, and that would be inherited.
pub fn reset() -> Result<(), Errno> {
    set_all(libc::SIG_DFL, &[])
}

/// Ignores what can be ignored, except the end of children, which would then not be reported.
pub fn ignore() -> Result<(), Errno> {
    set_all(libc::SIG_IGN, &[libc::SIGCHLD])
}

/// Ends this process by a signal, as another process has ended.
pub fn end_by(signal: i32) {
    // SAFETY: takes numbers, and the default handling runs no code of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
