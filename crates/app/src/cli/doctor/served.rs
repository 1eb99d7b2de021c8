//! The look of a server at itself and its machine, for `GET /api/doctor`. Whoever asks may be anybody with a token: where
//! things lie here is not told.

use super::{Finding, State, agents, configuration, database, machine, programs};
use crate::config::Config;
use engine::Engine;
use server::http::doctor::{Check, Examine, Verdict};
use std::net::SocketAddr;

pub fn examine(config: &Config, engine: &Engine, address: SocketAddr) -> Examine {
    let (config, engine) = (config.clone(), engine.clone());
    Box::new(move || {
        let (config, engine) = (config.clone(), engine.clone());
        Box::pin(async move { look(&config, &engine, address).await })
    })
}

async fn look(config: &Config, engine: &Engine, address: SocketAddr) -> Vec<Check> {
    let (database, providers, programs) =
        tokio::join!(database::check_served(engine.store()), agents::check_served(engine), programs::check());
    let data = config.store.data_dir.clone();
    let disk = tokio::task::spawn_blocking(move || machine::data_directory(&data)).await;
    let disk = disk.unwrap_or_else(|error| Finding::new("data directory", State::Broken, error.to_string()));
    let mut findings = vec![
        configuration(config),
        disk,
        database,
        Finding::new("address", State::Ok, format!("port {}", address.port())),
    ];
    findings.extend(providers);
    findings.extend(programs);
    findings.into_iter().map(check).collect()
}

fn check(finding: Finding) -> Check {
    let Finding { what: name, state, place: _, detail, advice } = finding;
    let status = match state {
        State::Ok => Verdict::Ok,
        State::Missing => Verdict::Warn,
        State::Broken => Verdict::Fail,
    };
    Check { name, status, detail, advice }
}
