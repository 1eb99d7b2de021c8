//! The checks of a running server for `GET /api/doctor`. Only the operator may call it; paths on this machine are left
//! out all the same.

use super::{DoctorFinding, FindingState, agents, configuration, database, isolation, machine, programs};
use crate::config::AppConfig;
use engine::Engine;
use server::http::doctor::{CheckStatus, DoctorCheck, RunDoctorChecks};
use std::net::SocketAddr;
use store::Store;

pub fn server_checks(config: &AppConfig, store: &Store, engine: &Engine, address: SocketAddr) -> RunDoctorChecks {
    let (config, store, engine) = (config.clone(), store.clone(), engine.clone());
    Box::new(move || {
        let (config, store, engine) = (config.clone(), store.clone(), engine.clone());
        Box::pin(async move { run_checks(&config, &store, &engine, address).await })
    })
}

async fn run_checks(config: &AppConfig, store: &Store, engine: &Engine, address: SocketAddr) -> Vec<DoctorCheck> {
    let (database, providers, programs, isolation) = tokio::join!(
        database::check_running_server(store),
        agents::check_running_server(engine),
        programs::check(),
        isolation::check(config.sandbox.agents)
    );
    let checked = config.clone();
    let files = move || {
        let folder = machine::data_directory(&checked.store.data_dir);
        vec![folder, machine::private_files(&checked), machine::encryption(&checked)]
    };
    let files = tokio::task::spawn_blocking(files).await;
    let failed = |error: tokio::task::JoinError| {
        vec![DoctorFinding::new("data directory", FindingState::Broken, error.to_string())]
    };
    let mut findings = vec![configuration(config)];
    findings.extend(files.unwrap_or_else(failed));
    findings.push(database);
    findings.push(DoctorFinding::new("address", FindingState::Ok, format!("port {}", address.port())));
    findings.push(isolation);
    findings.extend(providers);
    findings.extend(programs);
    findings.into_iter().map(to_check).collect()
}

fn to_check(finding: DoctorFinding) -> DoctorCheck {
    let DoctorFinding { what: name, state, location: _, detail, advice } = finding;
    let status = match state {
        FindingState::Ok => CheckStatus::Ok,
        FindingState::Missing => CheckStatus::Warn,
        FindingState::Broken => CheckStatus::Fail,
    };
    DoctorCheck { name, status, detail, advice }
}
