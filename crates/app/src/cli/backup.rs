//! `greenroom backup` and `greenroom restore`: write the whole store to a file, and read it back.
//!
//! This file handles arguments and output. After a restore the store has a new epoch: readers with later positions are
//! told to start over instead of silently missing events (invariant 8).

use super::{DataArgs, Exit, exit::UsageError, store_access::open_store_at};
use crate::{config::AppConfig, serve::store_config};
use clap::Args;
use domain::position::Epoch;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};
use store::{Backend, backup::BackupContents};

#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The file to write; it must not exist yet.
    file: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A file that `greenroom backup` wrote.
    #[arg(required_unless_present = "new_epoch")]
    file: Option<PathBuf>,
    /// Replace what is stored now; without it a store that is not empty is left alone.
    #[arg(long)]
    replace: bool,
    /// The database was restored by other means (`pg_restore`): only tell readers to start over.
    #[arg(long, conflicts_with_all = ["file", "replace"])]
    new_epoch: bool,
    #[command(flatten)]
    data: DataArgs,
}

pub async fn backup(arguments: &BackupArgs) -> anyhow::Result<Exit> {
    if arguments.file.exists() {
        let said = format!("{} exists already; a backup does not overwrite a file", arguments.file.display());
        return Err(UsageError(said).into());
    }
    let store = open_store_at(&arguments.data).await?;
    let contents = store::backup::backup(&store, &arguments.file).await?;
    print_backed_up(&mut io::stdout().lock(), &arguments.file, &contents)?;
    Ok(Exit::Success)
}

pub async fn restore(arguments: &RestoreArgs) -> anyhow::Result<Exit> {
    let config = AppConfig::load(&arguments.data.flags())?;
    let store = store_config(&config)?;
    let Some(file) = &arguments.file else {
        let epoch = store::backup::new_epoch(&store).await?;
        writeln!(io::stdout().lock(), "the epoch is now {epoch}")?;
        return Ok(Exit::Success);
    };
    if !file.is_file() {
        return Err(UsageError(format!("{} is not a file", file.display())).into());
    }
    if let Backend::Sqlite { file: database } = &store.backend
        && database.exists()
        && !arguments.replace
    {
        return Err(UsageError(format!("{} exists; --replace throws away what it holds", config.store.database)).into());
    }
    let (contents, epoch) = store::backup::restore(&store, file).await?;
    print_restored(&mut io::stdout().lock(), file, &contents, &epoch)?;
    Ok(Exit::Success)
}

pub fn print_backed_up(out: &mut impl Write, file: &Path, contents: &BackupContents) -> io::Result<()> {
    let BackupContents { rooms, events } = contents;
    writeln!(out, "{rooms} rooms with {events} events are in {}", file.display())
}

pub fn print_restored(out: &mut impl Write, file: &Path, contents: &BackupContents, epoch: &Epoch) -> io::Result<()> {
    let BackupContents { rooms, events } = contents;
    writeln!(out, "{rooms} rooms with {events} events are back from {}; the epoch is now {epoch}", file.display())
}
