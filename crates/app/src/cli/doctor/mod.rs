//! `greenroom doctor`: what is installed, what is missing, and how to get it. Fails only if something that Greenroom
//! itself needs is broken; a missing agent CLI is not an error.

mod agents;
mod database;
mod isolation;
mod machine;
mod programs;
mod remote;
mod running_server;

pub use running_server::server_checks;

use super::{DataArgs, Exit, ServerArgs};
use crate::{
    config::{AgentIsolation, AppConfig, SecretString},
    terminal::table,
};
use clap::Args;
use std::{fmt, io};

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The running server to check, instead of this machine.
    #[arg(long, value_name = "URL", env = "GREENROOM_SERVER", hide_env_values = true)]
    server: Option<String>,
    /// An access token of the operator. Without one, the local key of the data directory is sent to a server on this machine.
    #[arg(long, env = "GREENROOM_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FindingState {
    Ok,
    /// Optional; the detail says how to get it.
    Missing,
    /// Greenroom does not work without it.
    Broken,
}

struct DoctorFinding {
    what: String,
    state: FindingState,
    /// Where it is on this machine. Not sent over the network.
    location: Option<String>,
    detail: String,
    /// What to do about it.
    advice: Option<String>,
}

impl DoctorFinding {
    fn new(what: impl Into<String>, state: FindingState, detail: impl Into<String>) -> Self {
        Self { what: what.into(), state, location: None, detail: detail.into(), advice: None }
    }

    fn at(mut self, location: impl fmt::Display) -> Self {
        self.location = Some(location.to_string());
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Location, detail and advice on one line.
    fn summary(&self) -> String {
        let parts = [self.location.as_deref(), Some(self.detail.as_str()), self.advice.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

fn configuration(config: &AppConfig) -> DoctorFinding {
    match &config.file {
        Some(path) => DoctorFinding::new("configuration", FindingState::Ok, "read").at(path.display()),
        None => DoctorFinding::new("configuration", FindingState::Ok, "the defaults; no file"),
    }
}

pub async fn run(DoctorArgs { server, token, data }: DoctorArgs) -> anyhow::Result<Exit> {
    let findings = match server {
        Some(server) => {
            let data_dir = data.data_dir.clone();
            remote::check(&ServerArgs { server, token, data_dir, ca: None, fingerprint: None, calling_agent: None })
                .await?
        }
        None => check_machine(&data).await,
    };
    report(&findings)
}

async fn check_machine(data: &DataArgs) -> Vec<DoctorFinding> {
    let mut agents = AgentIsolation::Auto;
    let mut findings = match AppConfig::load(&data.flags()) {
        Ok(config) => {
            agents = config.sandbox.agents;
            let (database, (address, running)) = tokio::join!(database::check(&config), machine::address(&config));
            let mut findings = vec![configuration(&config), machine::data_directory(&config.store.data_dir)];
            let encryption = machine::encryption_in_use(&config, running.as_ref());
            findings.extend([machine::private_files(&config), database, address, encryption]);
            findings.extend(agents::check(&config).await);
            findings
        }
        Err(error) => {
            vec![DoctorFinding::new("configuration", FindingState::Broken, format!("{:#}", anyhow::Error::new(error)))]
        }
    };
    findings.push(isolation::check(agents).await);
    findings.extend(programs::check().await);
    findings
}

fn report(findings: &[DoctorFinding]) -> anyhow::Result<Exit> {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let state = match finding.state {
                FindingState::Ok => "ok",
                FindingState::Missing => "missing",
                FindingState::Broken => "BROKEN",
            };
            vec![finding.what.clone(), state.to_owned(), finding.summary()]
        })
        .collect();
    table::print(&mut io::stdout().lock(), &["what", "state", "detail"], &rows)?;
    let broken = findings.iter().any(|finding| finding.state == FindingState::Broken);
    Ok(if broken { Exit::Failed } else { Exit::Success })
}
