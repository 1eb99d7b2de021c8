//! Checks of the server and its machine. The checks are implemented elsewhere; here they get a deadline and a short
//! cache, because they start programs.

use crate::{App, auth::Caller, error::Problem};
use axum::{Json, extract::State};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::time::Duration;
use store::WorkspaceUse;
use tokio::{sync::Mutex, time::Instant};

const CACHE: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Verdict)]
pub enum CheckStatus {
    Ok,
    /// Something optional is missing.
    Warn,
    /// The server does not work without it.
    Fail,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Check)]
pub struct DoctorCheck {
    pub name: String,
    pub status: CheckStatus,
    /// The finding.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Runs all checks.
pub type RunDoctorChecks = Box<dyn Fn() -> BoxFuture<'static, Vec<DoctorCheck>> + Send + Sync>;

pub struct Doctor {
    run_checks: RunDoctorChecks,
    last: Mutex<Option<(Instant, Vec<DoctorCheck>)>>,
}

impl Doctor {
    pub fn new(run_checks: RunDoctorChecks) -> Self {
        Self { run_checks, last: Mutex::new(None) }
    }

    async fn checks(&self) -> Vec<DoctorCheck> {
        // Held while the checks run, so that concurrent requests share one result.
        let mut last = self.last.lock().await;
        if let Some((at, checks)) = &*last
            && at.elapsed() < CACHE
        {
            return checks.clone();
        }
        let checks = tokio::time::timeout(DEADLINE, (self.run_checks)()).await.unwrap_or_else(|_| {
            vec![DoctorCheck {
                name: "doctor".to_owned(),
                status: CheckStatus::Fail,
                detail: format!("the checks took longer than {} s", DEADLINE.as_secs()),
                advice: Some("see the server's log".to_owned()),
            }]
        });
        last.insert((Instant::now(), checks)).1.clone()
    }
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Examination)]
pub struct DoctorReport {
    version: &'static str,
    checks: Vec<DoctorCheck>,
    /// What workspaces use of the server, those that store the most first.
    workspaces: Vec<WorkspaceUseView>,
}

/// What one workspace has on this server.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = WorkspaceUse)]
pub struct WorkspaceUseView {
    workspace: String,
    rooms: u64,
    unfinished_runs: u64,
    /// The events of its rooms, its uploads and the files of its skills.
    stored_bytes: u64,
    /// Event streams and WebSockets that are open on this server.
    streams: usize,
}

const WORKSPACES: u32 = 100;

/// Check the server
///
/// The findings of `greenroom doctor` on the server's machine, without paths. Cached for 30 seconds.
#[utoipa::path(get, path = "/api/doctor", tag = "server", responses((status = 200, body = DoctorReport)))]
pub async fn examine(State(app): State<App>, _: Caller) -> Result<Json<DoctorReport>, Problem> {
    let streams = app.shares.streams();
    let view = |used: WorkspaceUse| WorkspaceUseView {
        streams: streams.get(&used.workspace).copied().unwrap_or_default(),
        workspace: used.workspace.as_str().to_owned(),
        rooms: used.rooms,
        unfinished_runs: used.unfinished_runs,
        stored_bytes: used.stored_bytes,
    };
    let workspaces = app.engine.queries().workspace_uses(WORKSPACES).await?.into_iter().map(view).collect();
    Ok(Json(DoctorReport { version: env!("CARGO_PKG_VERSION"), checks: app.doctor.checks().await, workspaces }))
}

#[cfg(test)]
mod tests {
    use super::{CACHE, CheckStatus, DEADLINE, Doctor, DoctorCheck};
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[tokio::test(start_paused = true)]
    async fn checks_are_cached_and_have_a_deadline() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let doctor = Doctor::new(Box::new(move || {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                if call == 1 {
                    tokio::time::sleep(DEADLINE * 2).await;
                }
                let (name, detail) = ("disk".to_owned(), call.to_string());
                vec![DoctorCheck { name, status: CheckStatus::Ok, detail, advice: None }]
            })
        }));
        let (one, two) = tokio::join!(doctor.checks(), doctor.checks());
        assert_eq!((one[0].detail.as_str(), one == two, calls.load(Ordering::SeqCst)), ("0", true, 1));
        tokio::time::advance(CACHE).await;
        assert_eq!(doctor.checks().await[0].status, CheckStatus::Fail, "the second call hangs");
    }
}
