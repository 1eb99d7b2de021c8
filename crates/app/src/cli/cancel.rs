//! `greenroom cancel`: stops a run and prints its receipt.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient, ClientError,
        responses::{CancelResponse, RunListResponse},
    },
    find::find,
};
use crate::terminal::sanitize;
use clap::Args;
use domain::ids::RunId;
use std::{
    io::{self, Write as _},
    time::Duration,
};

/// The server responds when the run has stopped, which takes some time if a process does not end.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct CancelArgs {
    /// The run's id, or a part of it.
    run: String,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &CancelArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let run = match arguments.run.parse() {
        Ok(run) => run,
        Err(_) => {
            let unfinished: RunListResponse = client.get("/api/runs", &[("limit", "1000")]).await?;
            find("run", &unfinished.runs, &arguments.run)?.id
        }
    };
    let cancelled = stop(&client, run).await?;
    writeln!(io::stdout(), "{}", sanitize::line(&cancelled.to_string(), 400))?;
    Ok(Exit::Success)
}

/// Cancels a run and returns when it has stopped.
pub async fn stop(client: &ApiClient, run: RunId) -> Result<CancelResponse, ClientError> {
    client.post(&format!("/api/runs/{run}/cancel"), &serde_json::json!({}), DEADLINE).await
}
