//! Resource usage of a process as reported by the kernel, and the limit of open files.

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fs, path::Path, time::Duration};

/// The kernel's unit in `/proc/PID/stat`; it is 100 on every Linux.
const TICKS_A_SECOND: u64 = 100;

/// Returns the processor time of all threads of a process so far.
pub fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = text.rsplit_once(')').context("no name in stat")?.1.split_whitespace().collect();
    let ticks = |index: usize| -> anyhow::Result<u64> { Ok(fields.get(index).context("short stat")?.parse()?) };
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS_A_SECOND))
}

/// Returns the resident memory in KiB.
pub fn resident_kibibytes(pid: u32) -> anyhow::Result<f64> {
    status_kibibytes(pid, "VmRSS:")
}

/// The same without pages of files, such as the binary.
pub fn anonymous_kibibytes(pid: u32) -> anyhow::Result<f64> {
    status_kibibytes(pid, "RssAnon:")
}

fn status_kibibytes(pid: u32, field: &str) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(field)).context(field.to_owned())?;
    Ok(value.trim().trim_end_matches("kB").trim().parse()?)
}

/// Raises the limit of open files to its maximum and returns it. Children inherit the limit.
pub fn allow_many_files() -> anyhow::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

/// Returns the total size of the files in a folder, in bytes.
pub fn size_of_folder(folder: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let status = entry?.metadata()?;
        sum += if status.is_file() { status.len() } else { 0 };
    }
    Ok(sum)
}
