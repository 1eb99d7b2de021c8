//! Errors of the set-up: which step failed, and at what.

use crate::protocol::{SetupFailure, SetupStep};
use nix::errno::Errno;
use std::io;

pub type SetupResult<T> = Result<T, SetupFailure>;

pub trait DuringSetup<T> {
    fn during(self, step: SetupStep, what: impl Into<String>) -> SetupResult<T>;
}

impl<T> DuringSetup<T> for Result<T, Errno> {
    fn during(self, step: SetupStep, what: impl Into<String>) -> SetupResult<T> {
        self.map_err(|errno| SetupFailure { step, what: what.into(), errno: errno as i32 })
    }
}

impl<T> DuringSetup<T> for io::Result<T> {
    fn during(self, step: SetupStep, what: impl Into<String>) -> SetupResult<T> {
        let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        self.map_err(|error| SetupFailure { step, what: what.into(), errno: errno(error) })
    }
}
