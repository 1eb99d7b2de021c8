//! Opens the folders of spaces within their limits, for everything on this server that reads and writes there.

use super::{
    DiskQuota, ProjectFiles, ProjectFilesError, QuotaLimits,
    transfers::{Transfer, Transfers},
};
use domain::{
    owner::Owner,
    project::{ProjectCeilings, ProjectSpace, SpaceKey},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Spaces whose disk use is remembered.
const MAX_QUOTAS: usize = 1000;

#[derive(Debug)]
pub struct ProjectStorage {
    ceilings: ProjectCeilings,
    /// Free space that must be left on the disk.
    free_bytes: u64,
    quotas: Mutex<HashMap<SpaceKey, Arc<DiskQuota>>>,
    transfers: Arc<Transfers>,
}

impl ProjectStorage {
    pub fn new(ceilings: ProjectCeilings, free_bytes: u64) -> Self {
        Self { ceilings, free_bytes, quotas: Mutex::default(), transfers: Arc::default() }
    }

    /// The server's limits of one project.
    pub fn ceilings(&self) -> &ProjectCeilings {
        &self.ceilings
    }

    pub fn limits(&self, space: &ProjectSpace) -> QuotaLimits {
        let limits = self.ceilings.with(&space.settings.limits);
        QuotaLimits { bytes: limits.disk_bytes, files: limits.files, free_bytes: self.free_bytes }
    }

    /// Opens the folder of a space, which must exist. Blocks.
    pub fn open(&self, space: &ProjectSpace) -> Result<ProjectFiles, ProjectFilesError> {
        ProjectFiles::open(&space.folder, self.quota(space.key), self.limits(space))
    }

    /// Starts an upload or the download of an archive, unless the workspace has [`super::MAX_TRANSFERS`] of them.
    pub fn start_transfer(&self, owner: &Owner) -> Option<Transfer> {
        self.transfers.start(owner)
    }

    fn quota(&self, key: SpaceKey) -> Arc<DiskQuota> {
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        if quotas.len() >= MAX_QUOTAS {
            quotas.retain(|_, quota| Arc::strong_count(quota) > 1);
        }
        Arc::clone(quotas.entry(key).or_default())
    }
}
