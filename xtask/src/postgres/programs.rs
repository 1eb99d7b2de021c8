//! Finds the folder with PostgreSQL's server programs, which many systems keep out of PATH.

use std::path::{Path, PathBuf};

use crate::repository::find_in_path;

const NEEDED: &[&str] = &["initdb", "postgres", "pg_ctl"];
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder that PATH leads to, else the highest version in Debian's folder.
pub fn find() -> Option<PathBuf> {
    let in_path = find_in_path("initdb").and_then(|file| folder_of(&file));
    in_path.or_else(|| highest_version(Path::new(DEBIAN)))
}

/// Follows links: the folder of a link has only some of the programs.
fn folder_of(program: &Path) -> Option<PathBuf> {
    let folder = program.canonicalize().ok()?.parent()?.to_path_buf();
    is_complete(&folder).then_some(folder)
}

fn highest_version(folder: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| is_complete(folder))
        .max()
        .map(|(_, folder)| folder)
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|name| folder.join(name).is_file())
}
