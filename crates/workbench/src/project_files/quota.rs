//! What a project takes of the disk. Measured by looking at all its files, because its commands write too, and counted on
//! while the server itself writes.

use super::ProjectFilesError;
use crate::files::{Root, TreeSize};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a measurement is used. What the server writes meanwhile is added to it.
const MEASUREMENT_LIFETIME: Duration = Duration::from_secs(5);
/// The free space, and an old measurement, are checked again after this much.
const CHECK_EVERY: u64 = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaLimits {
    pub bytes: u64,
    pub files: u64,
    /// Free space that must be left on the disk.
    pub free_bytes: u64,
}

/// The account of one project, shared by everything on this server that writes there.
#[derive(Debug, Default)]
pub struct DiskQuota(Mutex<QuotaAccount>);

#[derive(Debug, Default)]
struct QuotaAccount {
    used: TreeSize,
    measured: Option<Instant>,
    since_check: u64,
}

impl DiskQuota {
    fn lock(&self) -> MutexGuard<'_, QuotaAccount> {
        // Plain numbers, which no panic can leave inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures the folder if the last measurement is too old, and checks the free space. A long upload repeats it: others
    /// write meanwhile.
    pub(super) fn begin(&self, root: &Root, limits: &QuotaLimits) -> Result<(), ProjectFilesError> {
        let is_fresh = self.lock().measured.is_some_and(|at| at.elapsed() < MEASUREMENT_LIFETIME);
        if !is_fresh {
            let size = root.measure(limits.files.saturating_mul(2))?;
            let mut account = self.lock();
            account.used = size;
            account.measured = Some(Instant::now());
        }
        check_space(root, limits)
    }

    /// Counts what is about to be written, if it fits.
    pub(super) fn take(&self, root: &Root, limits: &QuotaLimits, size: TreeSize) -> Result<(), ProjectFilesError> {
        let is_check_due = {
            let mut account = self.lock();
            let bytes = account.used.bytes.saturating_add(size.bytes);
            let files = account.used.files.saturating_add(size.files);
            if bytes > limits.bytes {
                return Err(ProjectFilesError::TooManyBytes { limit: limits.bytes });
            }
            if files > limits.files {
                return Err(ProjectFilesError::TooManyFiles { limit: limits.files });
            }
            account.used = TreeSize { bytes, files };
            account.since_check += size.bytes;
            let is_due = account.since_check >= CHECK_EVERY;
            if is_due {
                account.since_check = 0;
            }
            is_due
        };
        if is_check_due { self.begin(root, limits) } else { Ok(()) }
    }

    pub(super) fn give_back(&self, size: TreeSize) {
        let mut account = self.lock();
        account.used.bytes = account.used.bytes.saturating_sub(size.bytes);
        account.used.files = account.used.files.saturating_sub(size.files);
    }

    /// The next use measures again: something large was removed or moved.
    pub(super) fn forget(&self) {
        self.lock().measured = None;
    }
}

fn check_space(root: &Root, limits: &QuotaLimits) -> Result<(), ProjectFilesError> {
    match root.free_bytes()? < limits.free_bytes {
        true => Err(ProjectFilesError::DiskFull { floor: limits.free_bytes }),
        false => Ok(()),
    }
}
