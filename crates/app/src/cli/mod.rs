//! The command line: one file per command.
//!
//! Commands that talk to a server go through `client`, which knows HTTP; what they print goes through
//! [`crate::terminal`], because all of it may have been written by a model. `token`, `backup` and `restore` work on the
//! store itself, so that they need no running server.

mod agents;
mod arguments;
pub mod backup;
mod beside;
mod cancel;
mod client;
mod completions;
pub(crate) mod doctor;
mod events;
pub mod exit;
mod mcp;
mod rooms;
mod run;
pub mod token;

pub use arguments::{Cli, Command, Connection, Place};
pub use exit::Exit;

use crate::{config::Config, serve, telemetry};

pub async fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Serve(arguments) => {
            let config = Config::load(&arguments.flags())?;
            telemetry::init(&config.log)?;
            serve::run(config).await?;
            Ok(Exit::Success)
        }
        Command::Run(arguments) => run::run(arguments).await,
        Command::Rooms(connection) => rooms::run(&connection).await,
        Command::Agents(connection) => agents::run(&connection).await,
        Command::Events(arguments) => events::run(arguments).await,
        Command::Cancel(arguments) => cancel::run(&arguments).await,
        Command::Mcp(connection) => mcp::run(&connection).await,
        Command::Token(arguments) => token::run(arguments).await,
        Command::Doctor(place) => doctor::run(&place).await,
        Command::Backup(arguments) => backup::backup(&arguments).await,
        Command::Restore(arguments) => backup::restore(&arguments).await,
        Command::Completions(arguments) => completions::run(&arguments),
    }
}
