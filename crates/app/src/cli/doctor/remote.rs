//! The checks of the server that the command line talks to, which may be on another machine.

use super::{DoctorFinding, FindingState};
use crate::cli::{
    ServerArgs,
    client::{ApiClient, ClientError},
};
use serde::Deserialize;

/// The part of `GET /api/doctor` that is printed.
#[derive(Deserialize)]
struct ServerReport {
    version: String,
    checks: Vec<ReportedCheck>,
}

#[derive(Deserialize)]
struct ReportedCheck {
    name: String,
    status: String,
    detail: String,
    advice: Option<String>,
}

/// Fails only if the server does not answer the question; what it finds wrong with itself is in the findings.
pub async fn check(connection: &ServerArgs) -> anyhow::Result<Vec<DoctorFinding>> {
    // Also where a token is set: only the operator may ask.
    let client = ApiClient::with_local_key(connection)?;
    let report: ServerReport = match client.get("/api/doctor", &[]).await {
        Ok(report) => report,
        Err(error @ (ClientError::ConnectionLost { .. } | ClientError::Unreachable { .. })) => {
            let advice = "start it, or unset GREENROOM_SERVER to check this machine";
            let finding = DoctorFinding::new("server", FindingState::Broken, error.to_string());
            return Ok(vec![finding.at(client.server()).advise(advice)]);
        }
        Err(error) => return Err(error.into()),
    };
    let version = format!("answers, version {}", report.version);
    let server = DoctorFinding::new("server", FindingState::Ok, version).at(client.server());
    Ok([server].into_iter().chain(report.checks.into_iter().map(finding)).collect())
}

fn finding(ReportedCheck { name, status, detail, advice }: ReportedCheck) -> DoctorFinding {
    let state = match status.as_str() {
        "ok" => FindingState::Ok,
        "warn" => FindingState::Missing,
        _ => FindingState::Broken,
    };
    DoctorFinding { advice, ..DoctorFinding::new(name, state, detail) }
}
