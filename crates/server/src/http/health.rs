//! Whether the process lives, and whether it can do its work: ready means able to commit.

use crate::{
    App,
    error::{BoxError, Code, Problem},
};
use axum::{Json, extract::State};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::time::Duration;
use tokio::{sync::Mutex, time::Instant};

const DEADLINE: Duration = Duration::from_secs(2);

/// A probe commits, and this door is public: it is not to become a way to make the disk work.
const CACHE: Duration = Duration::from_secs(1);

/// Commits something small, or says why it cannot. May be dropped half-way.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

pub struct Readiness {
    probe: Probe,
    succeeded: Mutex<Option<Instant>>,
}

impl Readiness {
    pub fn new(probe: Probe) -> Self {
        Self { probe, succeeded: Mutex::new(None) }
    }

    async fn check(&self) -> Result<(), BoxError> {
        let probe = async {
            let mut succeeded = self.succeeded.lock().await;
            if succeeded.is_some_and(|at| at.elapsed() < CACHE) {
                return Ok(());
            }
            (self.probe)().await?;
            *succeeded = Some(Instant::now());
            Ok(())
        };
        tokio::time::timeout(DEADLINE, probe).await?
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Health {
    status: &'static str,
}

/// Is the process alive?
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, body = Health)))]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Can it do its work?
///
/// Ready means able to commit to the database.
#[utoipa::path(get, path = "/readyz", tag = "server", responses((status = 200, body = Health)))]
pub async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.stopping.is_cancelled() {
        return Err(Problem::new(Code::Unavailable, "The server is stopping."));
    }
    let committed = app.readiness.check().await;
    committed.map_err(|cause| {
        Problem::new(Code::Unavailable, "The server cannot commit to its database right now.").caused_by(cause)
    })?;
    Ok(Json(Health { status: "ready" }))
}
