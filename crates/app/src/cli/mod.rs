//! The command line: one file per command.
//!
//! Commands that talk to a server use `client`, which knows HTTP. Their output goes through [`crate::terminal`],
//! because it may contain text of a model. `auth header` reads the data folder; `token`, `backup` and `restore` open the store directly and need no running
//! server.

mod agents;
mod approve;
mod arguments;
mod audit;
mod auth;
pub mod backup;
mod budget;
mod cancel;
mod chat;
pub(crate) mod client;
mod completions;
pub(crate) mod doctor;
mod events;
pub mod exit;
mod find;
mod mcp;
mod memory;
mod objects;
mod rooms;
mod run;
mod secrets;
mod store_access;
pub mod token;
mod upgrade_check;
pub mod version;

pub use arguments::{Cli, CliCommand, DataArgs, ServerArgs};
pub use exit::Exit;

use crate::{config::AppConfig, serve, telemetry};

pub async fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        CliCommand::Serve(arguments) => {
            let config = AppConfig::load(&arguments.flags())?;
            telemetry::init(&config.log)?;
            serve::run(config, arguments.no_open).await?;
            Ok(Exit::Success)
        }
        CliCommand::Run(arguments) => run::run(arguments).await,
        CliCommand::Chat(arguments) => chat::run(arguments).await,
        CliCommand::Rooms(arguments) => rooms::run(&arguments).await,
        CliCommand::Agents(arguments) => agents::run(&arguments).await,
        CliCommand::Create(arguments) => objects::create(&arguments).await,
        CliCommand::Rename(arguments) => objects::rename(&arguments).await,
        CliCommand::Delete(arguments) => objects::delete(&arguments).await,
        CliCommand::Approve(arguments) => approve::run(&arguments).await,
        CliCommand::Events(arguments) => events::run(arguments).await,
        CliCommand::Cancel(arguments) => cancel::run(&arguments).await,
        CliCommand::Budget(arguments) => budget::run(&arguments).await,
        CliCommand::Memory(arguments) => memory::run(&arguments).await,
        CliCommand::Mcp(connection) => mcp::run(&connection).await,
        CliCommand::Auth(arguments) => auth::run(&arguments).await,
        CliCommand::Audit(arguments) => audit::run(&arguments).await,
        CliCommand::Secrets(arguments) => secrets::run(&arguments),
        CliCommand::Token(arguments) => token::run(arguments).await,
        CliCommand::Doctor(arguments) => doctor::run(arguments).await,
        CliCommand::Backup(arguments) => backup::backup(&arguments).await,
        CliCommand::Restore(arguments) => backup::restore(&arguments).await,
        CliCommand::UpgradeCheck(data) => upgrade_check::run(&data).await,
        CliCommand::Completions(arguments) => completions::run(&arguments),
    }
}
