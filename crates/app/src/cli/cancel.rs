//! `greenroom cancel`: stops a run and says what that took.

use super::{
    Connection, Exit,
    client::{Client, Error, views::Cancelled},
};
use crate::terminal::sanitise;
use clap::Args;
use domain::ids::RunId;
use std::{
    io::{self, Write as _},
    time::Duration,
};

/// The answer comes when the work has really stopped, which can take a stubborn process some time.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct Arguments {
    /// The run's id.
    run: RunId,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let client = Client::new(&arguments.connection)?;
    let cancelled = stop(&client, arguments.run).await?;
    writeln!(io::stdout(), "{}", sanitise::line(&cancelled.to_string(), 400))?;
    Ok(Exit::Success)
}

/// Returns when the run has really stopped.
pub async fn stop(client: &Client, run: RunId) -> Result<Cancelled, Error> {
    client.post(&format!("/api/runs/{run}/cancel"), &serde_json::json!({}), DEADLINE).await
}
