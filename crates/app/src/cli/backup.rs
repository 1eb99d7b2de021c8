//! `greenroom backup` and `greenroom restore`: write the whole store to a file, and read it back.
//!
//! This file handles arguments and output. After a restore the store has a new epoch: readers with later positions are
//! told to start over instead of silently missing events (invariant 8).

use super::{DataArgs, Exit, exit::UsageError, store_access::open_store};
use crate::{config::AppConfig, serve::store_config};
use clap::Args;
use domain::position::Epoch;
use std::{
    fs,
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
    let config = AppConfig::load(&arguments.data.flags())?;
    let store = open_store(&config).await?;
    let backed_up = store::backup::backup(&store, &arguments.file).await;
    let data_dir = config.store.data_dir.clone();
    let left_out = tokio::task::spawn_blocking(move || files_left_out(&data_dir)).await?;
    let mut out = io::stdout().lock();
    if let Ok(contents) = &backed_up {
        print_backed_up(&mut out, &arguments.file, contents)?;
    }
    // Also for a database that is backed up by other means.
    print_left_out(&mut out, &config.store.data_dir, &left_out)?;
    backed_up?;
    Ok(Exit::Success)
}

/// Folders of the data folder that a backup of the database does not contain: uploads, the folders of rooms and projects, what
/// agents' programs remember, and the operator's skills.
const LEFT_OUT: [&str; 6] = ["uploads", "rooms", "projects", "agents", "homes", "skills"];
/// More files are not counted.
const MAX_COUNTED: u64 = 100_000;

/// A folder that is not in the backup.
struct FolderLeftOut {
    name: &'static str,
    files: u64,
    bytes: u64,
}

/// The folders that have files in them. Links are not followed.
fn files_left_out(data_dir: &Path) -> Vec<FolderLeftOut> {
    let count = |name: &'static str| {
        let mut found = FolderLeftOut { name, files: 0, bytes: 0 };
        let mut folders = vec![data_dir.join(name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) if found.files < MAX_COUNTED => {
                        found.files += 1;
                        found.bytes += metadata.len();
                    }
                    _ => {}
                }
            }
        }
        found
    };
    LEFT_OUT.into_iter().map(count).filter(|folder| folder.files > 0).collect()
}

fn print_left_out(out: &mut impl Write, data_dir: &Path, left_out: &[FolderLeftOut]) -> io::Result<()> {
    if left_out.is_empty() {
        return Ok(());
    }
    writeln!(out, "not in the database, and to be copied from {}:", data_dir.display())?;
    for FolderLeftOut { name, files, bytes } in left_out {
        let number = if *files >= MAX_COUNTED { format!("{files} files or more") } else { format!("{files} files") };
        writeln!(out, "  {name}/  {number}, {bytes} bytes")?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::{files_left_out, print_left_out};
    use std::fs;

    #[test]
    fn a_backup_says_which_files_it_leaves_out() {
        let data = tempfile::tempdir().unwrap();
        for folder in ["uploads", "rooms/one", "skills", "runs"] {
            fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        for file in ["uploads/a", "rooms/one/b.txt", "rooms/one/c.txt", "runs/not-listed"] {
            fs::write(data.path().join(file), "12345").unwrap();
        }
        std::os::unix::fs::symlink("/", data.path().join("rooms/link")).unwrap();
        let mut out = Vec::new();
        print_left_out(&mut out, data.path(), &files_left_out(data.path())).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("uploads/  1 files, 5 bytes"), "{text}");
        assert!(text.contains("rooms/  3 files"), "the link counts, what it leads to does not: {text}");
        assert!(!text.contains("skills") && !text.contains("runs"), "{text}");
    }
}
