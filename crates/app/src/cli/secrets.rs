//! `greenroom secrets rotate`: adds a new key for the secrets that the database stores.

use super::{DataArgs, Exit};
use crate::config::AppConfig;
use clap::{Args, Subcommand};
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct SecretsArgs {
    #[command(subcommand)]
    command: SecretsCommand,
}

#[derive(Subcommand, Debug)]
enum SecretsCommand {
    /// Add a new key to the file of keys; the next start of the server encrypts everything with it.
    Rotate(DataArgs),
}

pub fn run(arguments: &SecretsArgs) -> anyhow::Result<Exit> {
    let SecretsCommand::Rotate(data) = &arguments.command;
    let config = AppConfig::load(&data.flags())?;
    let file = &config.store.secrets_key_file;
    anyhow::ensure!(
        file.exists(),
        "there are no keys at {}; the first start of the server creates them. Is --data-dir right?",
        file.display()
    );
    store::add_secrets_key(file)?;
    writeln!(
        io::stdout().lock(),
        "{} has a new key. Restart the server: it encrypts the stored secrets again. Keep the older lines as long as you \
         keep backups of the database that need them.",
        file.display()
    )?;
    Ok(Exit::Success)
}
