//! Lists of checksums, by the programs of the coreutils.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::files;
use crate::repository::{XtaskResult, spell};
use crate::steps::Steps;

const LIST: &str = "SHA256SUMS";
const LIMIT: Duration = Duration::from_secs(300);

/// `sha256sum --check SHA256SUMS` in the folder reads it.
pub fn write(folder: &Path, names: &[&str], steps: &Steps) -> XtaskResult<()> {
    let mut names = names.to_vec();
    names.sort_unstable();
    files::write(&folder.join(LIST), list("sha256sum", folder, &names, steps)?.as_bytes(), 0o644)
}

/// One line for each file.
pub fn list(program: &str, folder: &Path, names: &[&str], steps: &Steps) -> XtaskResult<String> {
    let mut command = Command::new(program);
    output(command.arg("--").args(names).current_dir(folder), steps)
}

pub fn verify(folder: &Path, steps: &Steps) -> XtaskResult<String> {
    let mut command = Command::new("sha256sum");
    let lines = output(command.args(["--check", "--strict", LIST]).current_dir(folder), steps)?;
    Ok(format!("{} files", lines.lines().count()))
}

fn output(command: &mut Command, steps: &Steps) -> XtaskResult<String> {
    let mut text = String::new();
    let status = steps.follow(command, LIMIT, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    match status.success() {
        true => Ok(text),
        false => Err(format!("`{}` ended with {status}:\n{}", spell(command), text.trim_end())),
    }
}
