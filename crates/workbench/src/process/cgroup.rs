//! One leaf of the cgroup v2 tree per kill domain, where the system permits it: the kernel then kills all of its
//! members at once, and no process can escape by forking.

use super::domain_id::{KillDomainId, ServerInstance};
use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

const PREFIX: &str = "greenroom-";
const PAUSE: Duration = Duration::from_millis(5);

/// The cgroup of the server itself; leaves are created beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupBase(PathBuf);

impl CgroupBase {
    /// Returns `None` without cgroup v2, or where this process may not create leaves.
    pub fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let base = Self(folder(&own, &mounts)?);
        // With a mount from another namespace the path may point elsewhere.
        let members = fs::read_to_string(base.0.join("cgroup.procs")).ok()?;
        let id = std::process::id().to_string();
        members.lines().find(|member| *member == id)?;
        let trial = base.leaf(&ServerInstance::current()?.new_domain());
        trial.create().ok()?;
        let works = trial.0.join("cgroup.kill").exists();
        trial.remove(Duration::ZERO).ok()?;
        works.then_some(base)
    }

    pub fn leaf(&self, domain: &KillDomainId) -> LeafCgroup {
        LeafCgroup(self.0.join(format!("{PREFIX}{domain}")))
    }

    /// Returns the leaves left behind by servers that are dead now.
    pub fn abandoned(&self, viewer: ServerInstance) -> Vec<LeafCgroup> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let leaves = names.filter_map(|entry| {
            let domain: KillDomainId = entry.file_name().to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
            domain.server.is_dead(viewer).then(|| LeafCgroup(entry.path()))
        });
        leaves.collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafCgroup(PathBuf);

impl LeafCgroup {
    pub fn from_path(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn create(&self) -> io::Result<()> {
        fs::create_dir(&self.0)
    }

    /// Moves this process, and all processes that it starts from now on, into the leaf.
    pub fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    pub fn leave(&self) -> io::Result<()> {
        let base = self.0.parent().unwrap_or(&self.0);
        fs::write(base.join("cgroup.procs"), "0")
    }

    /// Kills all processes in the leaf and beneath it. A leaf that no longer exists is not an error.
    pub fn kill(&self) -> io::Result<()> {
        match fs::write(self.0.join("cgroup.kill"), "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    pub fn members(&self) -> Vec<i32> {
        let mut members = Vec::new();
        gather(&self.0, &mut members);
        members
    }

    /// Waits until the leaf is empty and removes it.
    pub fn remove(&self, timeout: Duration) -> io::Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            match remove(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() >= deadline => {
                    return Err(error);
                }
                Err(_) => {
                    self.kill()?;
                    thread::sleep(PAUSE);
                }
                Ok(()) => return Ok(()),
            }
        }
    }
}

/// A program may have created child cgroups in its leaf.
fn beneath(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn gather(folder: &Path, members: &mut Vec<i32>) {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    members.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    for inner in beneath(folder) {
        gather(&inner, members);
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    for inner in beneath(folder) {
        remove(&inner)?;
    }
    fs::remove_dir(folder)
}

/// Returns the path of this process's cgroup, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn folder(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(())?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(path.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::{CgroupBase, LeafCgroup, folder};
    use crate::process::domain_id::ServerInstance;
    use std::{path::Path, time::Duration};

    const MOUNTS: &str = "24 1 0:22 / /proc rw - proc proc rw\n\
        30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn finds_the_path_of_its_own_cgroup() {
        let own = "4:memory:/elsewhere\n0::/system.slice/greenroom.service\n";
        let found = folder(own, MOUNTS);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/system.slice/greenroom.service")));
        assert_eq!(folder("0::/\n", MOUNTS).as_deref(), Some(Path::new("/sys/fs/cgroup/")));
    }

    #[test]
    fn supports_a_mount_of_part_of_the_tree() {
        let mounts = MOUNTS.replace("0:27 / ", "0:27 /docker/abc ");
        let found = folder("0::/docker/abc/inner\n", &mounts);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/inner")));
        assert_eq!(folder("0::/other\n", &mounts), None);
    }

    #[test]
    fn returns_none_without_cgroup_v2() {
        assert_eq!(folder("4:memory:/x\n", MOUNTS), None);
        assert_eq!(folder("0::/\n", "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
    }

    #[test]
    fn abandoned_lists_leaves_of_dead_servers_only() {
        let root = tempfile::tempdir().unwrap();
        let (base, own) = (CgroupBase(root.path().to_owned()), ServerInstance::current().unwrap());
        let dead: crate::process::domain_id::KillDomainId =
            own.new_domain().to_string().replacen(&std::process::id().to_string(), "2147483647", 1).parse().unwrap();
        base.leaf(&own.new_domain()).create().unwrap();
        base.leaf(&dead).create().unwrap();
        std::fs::create_dir(root.path().join("greenroom-mine")).unwrap();
        assert_eq!(base.abandoned(own), [base.leaf(&dead)]);
    }

    #[test]
    fn remove_deletes_a_leaf_with_its_child_cgroups() {
        let root = tempfile::tempdir().unwrap();
        let leaf = LeafCgroup::from_path(root.path().join("leaf"));
        std::fs::create_dir_all(leaf.path().join("a/b")).unwrap();
        leaf.remove(Duration::ZERO).unwrap();
        assert!(!leaf.path().exists());
        leaf.remove(Duration::ZERO).unwrap();
    }
}
