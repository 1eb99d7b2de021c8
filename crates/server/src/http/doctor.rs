//! What the server found when it looked at itself and its machine. The looking is done elsewhere; here it is bounded and
//! kept for a moment, because it starts programs.

use crate::{App, auth::Caller};
use axum::{Json, extract::State};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::time::Duration;
use tokio::{sync::Mutex, time::Instant};

const KEPT: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// Something optional is missing.
    Warn,
    /// The server does not work without it.
    Fail,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Check {
    pub name: String,
    pub status: Verdict,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Looks at the machine anew.
pub type Examine = Box<dyn Fn() -> BoxFuture<'static, Vec<Check>> + Send + Sync>;

pub struct Doctor {
    examine: Examine,
    last: Mutex<Option<(Instant, Vec<Check>)>>,
}

impl Doctor {
    pub fn new(examine: Examine) -> Self {
        Self { examine, last: Mutex::new(None) }
    }

    async fn checks(&self) -> Vec<Check> {
        // Held while looking: whoever asks meanwhile gets what this look finds.
        let mut last = self.last.lock().await;
        if let Some((at, checks)) = &*last
            && at.elapsed() < KEPT
        {
            return checks.clone();
        }
        let checks = tokio::time::timeout(DEADLINE, (self.examine)()).await.unwrap_or_else(|_| {
            vec![Check {
                name: "doctor".to_owned(),
                status: Verdict::Fail,
                detail: format!("the look at this machine took longer than {} s", DEADLINE.as_secs()),
                advice: Some("see the server's log".to_owned()),
            }]
        });
        last.insert((Instant::now(), checks)).1.clone()
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Examination {
    version: &'static str,
    checks: Vec<Check>,
}

/// Is everything as it should be?
///
/// What `greenroom doctor` finds on the server's machine, without saying where things lie there. Looked up at most twice a
/// minute.
#[utoipa::path(get, path = "/api/doctor", tag = "server", responses((status = 200, body = Examination)))]
pub async fn examine(State(app): State<App>, _: Caller) -> Json<Examination> {
    Json(Examination { version: env!("CARGO_PKG_VERSION"), checks: app.doctor.checks().await })
}

#[cfg(test)]
mod tests {
    use super::{Check, DEADLINE, Doctor, KEPT, Verdict};
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[tokio::test(start_paused = true)]
    async fn a_look_is_kept_for_a_moment_and_has_a_deadline() {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let doctor = Doctor::new(Box::new(move || {
            let look = counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                if look == 1 {
                    tokio::time::sleep(DEADLINE * 2).await;
                }
                let (name, detail) = ("disk".to_owned(), look.to_string());
                vec![Check { name, status: Verdict::Ok, detail, advice: None }]
            })
        }));
        let (one, two) = tokio::join!(doctor.checks(), doctor.checks());
        assert_eq!((one[0].detail.as_str(), one == two, looks.load(Ordering::SeqCst)), ("0", true, 1));
        tokio::time::advance(KEPT).await;
        assert_eq!(doctor.checks().await[0].status, Verdict::Fail, "it hangs");
    }
}
