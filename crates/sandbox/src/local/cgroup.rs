//! One cgroup per sandbox, where systemd has delegated a part of the cgroup v2 tree to the server. It limits the memory and
//! the number of all processes together, which nothing else does.
//!
//! The server must be in a leaf of the delegated part (`DelegateSubgroup=server`): the kernel does not let a cgroup have
//! both processes and limited children.

use crate::policy::SandboxLimits;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const PREFIX: &str = "sandbox-";
const CONTROLLERS: &[&str] = &["memory", "pids", "cpu"];
const REMOVE_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
const CPU_PERIOD: u64 = 100_000;

/// The delegated cgroup above the server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatedCgroup(PathBuf);

impl DelegatedCgroup {
    /// `None` if nothing is delegated, which is usual outside of the systemd unit.
    pub fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let found = Self(delegated(&own, &mounts)?);
        found.has_controllers().then_some(())?;
        found.enable_controllers().ok()?;
        found.remove_abandoned();
        Some(found)
    }

    fn has_controllers(&self) -> bool {
        let offered = fs::read_to_string(self.0.join("cgroup.controllers")).unwrap_or_default();
        CONTROLLERS.iter().all(|wanted| offered.split_whitespace().any(|controller| controller == *wanted))
    }

    /// Fails if the cgroup is not ours, or has processes of its own.
    fn enable_controllers(&self) -> io::Result<()> {
        let wanted = CONTROLLERS.iter().map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ");
        fs::write(self.0.join("cgroup.subtree_control"), wanted)
    }

    /// Those of a server that was killed. A cgroup with processes cannot be removed.
    fn remove_abandoned(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            fs::remove_dir(entry.path()).ok();
        }
    }

    pub fn create(&self, limits: &SandboxLimits) -> io::Result<SandboxCgroup> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let created = SandboxCgroup(self.0.join(name));
        fs::create_dir(&created.0)?;
        created.write_limits(limits)?;
        Ok(created)
    }
}

/// Removed when it is dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct SandboxCgroup(PathBuf);

impl SandboxCgroup {
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn write_limits(&self, limits: &SandboxLimits) -> io::Result<()> {
        let write = |name: &str, value: String| fs::write(self.0.join(name), value);
        write("memory.max", limits.total_memory_bytes.to_string())?;
        // Not every kernel has swap to limit.
        if self.0.join("memory.swap.max").exists() {
            write("memory.swap.max", "0".to_owned())?;
        }
        // The broker, the supervisor and one shepherd per command are ours.
        write("pids.max", limits.processes.saturating_mul(2).to_string())?;
        let quota = limits.cpu_percent.map(|percent| u64::from(percent) * CPU_PERIOD / 100);
        quota.map_or(Ok(()), |quota| write("cpu.max", format!("{quota} {CPU_PERIOD}")))
    }

    /// Kills what is left and removes the cgroup. Blocks for a moment.
    pub fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + REMOVE_TIMEOUT;
        loop {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    fs::write(self.0.join("cgroup.kill"), "1")?;
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }
}

/// The cgroup above our own, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn delegated(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    let above = path.parent()?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(())?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(above.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::{DelegatedCgroup, delegated};
    use crate::SandboxLimits;
    use std::{fs, path::Path};

    const MOUNTS: &str = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_delegated_cgroup_is_the_one_above_ours() {
        let own = "0::/system.slice/greenroom.service/server\n";
        let found = delegated(own, MOUNTS);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/system.slice/greenroom.service")));
        assert_eq!(delegated("0::/\n", MOUNTS), None);
        assert_eq!(delegated("4:memory:/x\n", MOUNTS), None);
    }

    #[test]
    fn a_cgroup_without_controllers_is_not_used() {
        let tree = tempfile::tempdir().unwrap();
        let cgroup = DelegatedCgroup(tree.path().to_owned());
        assert!(!cgroup.has_controllers());
        fs::write(tree.path().join("cgroup.controllers"), "cpuset cpu io memory hugetlb pids\n").unwrap();
        assert!(cgroup.has_controllers());
    }

    #[test]
    fn a_sandbox_gets_its_limits() {
        let tree = tempfile::tempdir().unwrap();
        let cgroup = DelegatedCgroup(tree.path().to_owned());
        let limits = SandboxLimits { processes: 64, cpu_percent: Some(150), ..SandboxLimits::default() };
        let created = cgroup.create(&limits).unwrap();
        let read = |name: &str| fs::read_to_string(created.path().join(name)).unwrap();
        assert_eq!((read("memory.max"), read("pids.max")), ((4u64 << 30).to_string(), "128".to_owned()));
        assert_eq!(read("cpu.max"), "150000 100000");
        assert!(!created.path().join("memory.swap.max").exists());
    }
}
