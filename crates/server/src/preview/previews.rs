//! The open previews: which host name leads to which port of which project, and on whose behalf. In memory, and for a while.

use crate::{error::Problem, shares::UserKey};
use domain::{actor::Actor, ids::ProjectId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// A preview that was not used for this long has ended.
const IDLE: Duration = Duration::from_secs(12 * 3600);
/// Previews of one user.
const MAX_OF_USER: usize = 50;
/// Connections to one preview at a time: requests and WebSockets.
const MAX_CONNECTIONS: usize = 64;
/// How long a check of the user's access holds.
const ACCESS_LIFETIME: Duration = Duration::from_secs(5);
const LABEL_BYTES: usize = 20;

#[derive(Debug)]
pub struct Preview {
    /// Who opened it: every request is on their behalf.
    pub actor: Actor,
    pub project: ProjectId,
    pub port: u16,
    /// The origin of the page that opened it, which may show it in a frame.
    pub opened_from: Option<String>,
    pub connections: Arc<Semaphore>,
    times: Mutex<PreviewTimes>,
}

#[derive(Debug)]
struct PreviewTimes {
    used: Instant,
    checked: Option<Instant>,
}

impl Preview {
    /// Whether the user's access has to be checked again before the next request.
    pub fn needs_check(&self) -> bool {
        self.times().checked.is_none_or(|at| at.elapsed() >= ACCESS_LIFETIME)
    }

    pub fn set_checked(&self) {
        self.times().checked = Some(Instant::now());
    }

    fn is_over(&self) -> bool {
        self.times().used.elapsed() >= IDLE
    }

    fn times(&self) -> MutexGuard<'_, PreviewTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub struct Previews(Mutex<HashMap<String, Arc<Preview>>>);

impl Previews {
    /// Opens a preview and returns its label: a secret, because it is all that a browser has to show.
    pub fn open(
        &self,
        actor: &Actor,
        project: ProjectId,
        port: u16,
        opened_from: Option<String>,
    ) -> Result<String, Problem> {
        let mut random = [0; LABEL_BYTES];
        getrandom::fill(&mut random).map_err(|error| Problem::internal(error.to_string()))?;
        let label = domain::hex::encode(&random);
        let mut previews = self.lock();
        previews.retain(|_, preview| !preview.is_over());
        let of_user = |preview: &Preview| UserKey::of(&preview.actor) == UserKey::of(actor);
        // The one that was not used for the longest time makes room.
        while previews.values().filter(|preview| of_user(preview)).count() >= MAX_OF_USER {
            let oldest = previews.iter().filter(|(_, preview)| of_user(preview)).min_by_key(|(_, it)| it.times().used);
            let Some(label) = oldest.map(|(label, _)| label.clone()) else { break };
            previews.remove(&label);
        }
        let preview = Preview {
            actor: actor.clone(),
            project,
            port,
            opened_from,
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            times: Mutex::new(PreviewTimes { used: Instant::now(), checked: None }),
        };
        previews.insert(label.clone(), Arc::new(preview));
        Ok(label)
    }

    pub fn find(&self, label: &str) -> Option<Arc<Preview>> {
        let found = self.lock().get(label).filter(|preview| !preview.is_over()).cloned()?;
        found.times().used = Instant::now();
        Some(found)
    }

    pub fn close(&self, label: &str) {
        self.lock().remove(label);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Preview>>> {
        // Single inserts and removes, which no panic can leave half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
