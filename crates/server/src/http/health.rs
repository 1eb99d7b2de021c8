//! Liveness and readiness. Ready means able to commit.

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

/// The probe commits and the route is public, so the result is cached to protect the disk.
const CACHE: Duration = Duration::from_secs(1);

/// Commits something small, or returns why it cannot. The future may be dropped at any time.
pub type ReadinessProbe = Box<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

pub struct Readiness {
    probe: ReadinessProbe,
    succeeded: Mutex<Option<Instant>>,
}

impl Readiness {
    pub fn new(probe: ReadinessProbe) -> Self {
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
#[schema(as = Health)]
pub struct HealthStatus {
    status: &'static str,
}

/// Check liveness
///
/// Answers as long as the process runs; not counted for rate limits.
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, body = HealthStatus)))]
pub async fn healthz() -> Json<HealthStatus> {
    Json(HealthStatus { status: "ok" })
}

/// Check readiness
///
/// Ready means able to commit to the database.
#[utoipa::path(get, path = "/readyz", tag = "server", responses((status = 200, body = HealthStatus)))]
pub async fn readyz(State(app): State<App>) -> Result<Json<HealthStatus>, Problem> {
    if app.stopping.is_cancelled() {
        return Err(Problem::new(Code::Unavailable, "The server is stopping."));
    }
    let committed = app.readiness.check().await;
    committed.map_err(|cause| {
        Problem::new(Code::Unavailable, "The server cannot commit to its database right now.").caused_by(cause)
    })?;
    Ok(Json(HealthStatus { status: "ready" }))
}
