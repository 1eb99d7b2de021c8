//! `greenroom cancel`: stops a run and prints its receipt.

use super::{
    Exit, ServerArgs,
    client::{ApiClient, ClientError, responses::CancelResponse},
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
    /// The run's id.
    run: RunId,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &CancelArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let cancelled = stop(&client, arguments.run).await?;
    writeln!(io::stdout(), "{}", sanitize::line(&cancelled.to_string(), 400))?;
    Ok(Exit::Success)
}

/// Cancels a run and returns when it has stopped.
pub async fn stop(client: &ApiClient, run: RunId) -> Result<CancelResponse, ClientError> {
    client.post(&format!("/api/runs/{run}/cancel"), &serde_json::json!({}), DEADLINE).await
}
