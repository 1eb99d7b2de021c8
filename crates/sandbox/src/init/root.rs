//! Builds the root folder of the sandbox and makes it the root of this process: system programs read-only, a few files of
//! `/etc`, small `/dev`, new `/proc`, and the project's folder.

use super::{
    namespaces::OpenedFolders,
    setup::{DuringSetup as _, SetupResult},
};
use crate::{
    policy::{GUEST_HOME, GUEST_WORKSPACE, SandboxLimits},
    protocol::{SetupFailure, SetupStep},
    sys::mount::{NO_DEVICES, NO_EXEC, NO_SETUID, READ_ONLY, set_attributes},
};
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    unistd::{chdir, pivot_root},
};
use std::{
    fs,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::symlink,
    },
    path::{Component, Path, PathBuf},
};

const STEP: SetupStep = SetupStep::Mounts;
/// Covered in our own mount namespace only. Every system has it.
const STAGING: &str = "/tmp";
const SYSTEM_FOLDERS: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// Package stores of systems whose `/usr` is almost empty.
const PACKAGE_STORES: &[&str] = &["nix/store", "gnu/store"];
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
const READ_ONLY_PROC: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];
const HIDDEN_PROC: &[&str] = &["kcore", "keys", "kmsg", "timer_list", "sched_debug"];

struct NewRoot(PathBuf);

pub fn enter(folders: OpenedFolders, limits: &SandboxLimits, user: u32) -> SetupResult<()> {
    // No mount of ours becomes visible outside, and none from outside here.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .during(STEP, "detach from the mounts outside")?;
    let root = NewRoot::create()?;
    root.mount_system()?;
    root.write_etc(user)?;
    root.mount_devices()?;
    root.mount_proc()?;
    root.mount_tmpfs("tmp", &format!("mode=1777,size={},nr_inodes=100k", limits.temp_bytes))?;
    root.mount_project(&folders)?;
    drop(folders);
    root.make_root()
}

impl NewRoot {
    fn create() -> SetupResult<Self> {
        let root = Self(Path::new(STAGING).join("root"));
        tmpfs(Path::new(STAGING), "mode=0755,size=1m")?;
        fs::create_dir(&root.0).during(STEP, "create the root folder")?;
        tmpfs(&root.0, "mode=0755,size=16m")?;
        for folder in ["usr", "etc", "proc", "dev", "tmp", "workspace", "home/agent", "run", "var/tmp", "old-root"] {
            root.create_folder(folder)?;
        }
        Ok(root)
    }

    fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        self.0.join(inside)
    }

    fn create_folder(&self, inside: impl AsRef<Path>) -> SetupResult<()> {
        let what = format!("create /{}", inside.as_ref().display());
        fs::create_dir_all(self.path(inside)).during(STEP, what)
    }

    fn write(&self, inside: impl AsRef<Path>, content: &str) -> SetupResult<()> {
        let path = self.path(&inside);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, content));
        written.during(STEP, format!("write /{}", inside.as_ref().display()))
    }

    fn link(&self, target: impl AsRef<Path>, inside: &str) -> SetupResult<()> {
        symlink(target, self.path(inside)).during(STEP, format!("link /{inside}"))
    }

    fn mount_tmpfs(&self, inside: &str, options: &str) -> SetupResult<()> {
        tmpfs(&self.path(inside), options)
    }

    /// Mounts a file or folder, at a target that is created with the same kind.
    fn bind(&self, source: &Path, inside: &Path, attributes: u64) -> SetupResult<()> {
        let what = || format!("mount /{}", inside.display());
        match fs::metadata(source).during(STEP, what())?.is_dir() {
            true => self.create_folder(inside)?,
            false => self.write(inside, "")?,
        }
        bind(source, &self.path(inside), attributes)
    }

    fn mount_system(&self) -> SetupResult<()> {
        let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
        bind(Path::new("/usr"), &self.path("usr"), attributes)?;
        for name in SYSTEM_FOLDERS {
            let original = Path::new("/").join(name);
            match fs::read_link(&original) {
                Ok(target) => self.link(target, name)?,
                Err(_) if original.is_dir() => self.bind(&original, Path::new(name), attributes)?,
                Err(_) => {}
            }
        }
        let in_etc = ETC.iter().map(|name| Path::new("etc").join(name));
        for inside in in_etc.chain(PACKAGE_STORES.iter().map(PathBuf::from)) {
            let original = Path::new("/").join(&inside);
            if original.exists() {
                self.bind(&original, &inside, attributes)?;
            }
        }
        Ok(())
    }

    /// Names of our own: the real ones would tell who uses this machine.
    fn write_etc(&self, user: u32) -> SetupResult<()> {
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        let passwd = format!(
            "root:x:0:0:root:/root:/bin/sh\nagent:x:{user}:{user}:agent:{GUEST_HOME}:{shell}\n\
             nobody:x:65534:65534:nobody:/:/bin/false\n"
        );
        self.write("etc/passwd", &passwd)?;
        self.write("etc/group", &format!("root:x:0:\nagent:x:{user}:\nnogroup:x:65534:\n"))?;
        self.write("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n")?;
        self.write("etc/hostname", "sandbox\n")
    }

    fn mount_devices(&self) -> SetupResult<()> {
        let dev = self.path("dev");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        mount(Some("tmpfs"), &dev, Some("tmpfs"), flags, Some("mode=0755,size=64k")).during(STEP, "mount /dev")?;
        for device in DEVICES {
            // Without MS_NODEV, or the device could not be opened.
            self.bind(&Path::new("/dev").join(device), &Path::new("dev").join(device), NO_SETUID | NO_EXEC)?;
        }
        self.link("/proc/self/fd", "dev/fd")?;
        for (number, name) in ["dev/stdin", "dev/stdout", "dev/stderr"].into_iter().enumerate() {
            self.link(format!("/proc/self/fd/{number}"), name)?;
        }
        self.create_folder("dev/shm")?;
        self.create_folder("dev/pts")?;
        self.mount_tmpfs("dev/shm", "mode=1777,size=64m")?;
        let options = "newinstance,ptmxmode=0666,mode=0620";
        mount(Some("devpts"), &self.path("dev/pts"), Some("devpts"), flags, Some(options))
            .during(STEP, "mount /dev/pts")?;
        self.link("pts/ptmx", "dev/ptmx")?;
        // Devices can still be written to, and what is mounted beneath has its own attributes.
        set_attributes(&dev, READ_ONLY, false).during(STEP, "make /dev read-only")
    }

    fn mount_proc(&self) -> SetupResult<()> {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("proc"), &self.path("proc"), Some("proc"), flags, None::<&str>)
            .during(SetupStep::Proc, "mount a new /proc")?;
        for name in READ_ONLY_PROC {
            let path = self.path("proc").join(name);
            if path.exists() {
                bind(&path, &path, READ_ONLY | NO_SETUID | NO_DEVICES | NO_EXEC)?;
            }
        }
        for name in HIDDEN_PROC {
            let path = self.path("proc").join(name);
            if path.exists() {
                bind(Path::new("/dev/null"), &path, READ_ONLY | NO_SETUID | NO_EXEC)?;
            }
        }
        Ok(())
    }

    fn mount_project(&self, folders: &OpenedFolders) -> SetupResult<()> {
        let attributes = NO_SETUID | NO_DEVICES;
        bind(&opened(&folders.workspace), &self.path(inside(Path::new(GUEST_WORKSPACE))?), attributes)?;
        let home = self.path(inside(Path::new(GUEST_HOME))?);
        match &folders.home {
            Some(folder) => bind(&opened(folder), &home, attributes)?,
            None => tmpfs(&home, "mode=0777,size=64m")?,
        }
        for (program, target) in &folders.programs {
            // Commands of an earlier start can have left links there, which would be followed outside.
            if [GUEST_WORKSPACE, GUEST_HOME, "/tmp"].iter().any(|own| target.starts_with(own)) {
                return Err(SetupFailure {
                    step: STEP,
                    what: format!("mount at {}", target.display()),
                    errno: libc::EINVAL,
                });
            }
            self.bind(&opened(program), inside(target)?, attributes | READ_ONLY)?;
        }
        Ok(())
    }

    fn make_root(self) -> SetupResult<()> {
        pivot_root(&self.0, &self.path("old-root")).during(STEP, "change the root folder")?;
        chdir("/").during(STEP, "enter the root folder")?;
        umount2("/old-root", MntFlags::MNT_DETACH).during(STEP, "remove the old root folder")?;
        fs::remove_dir("/old-root").during(STEP, "remove the old root folder")?;
        set_attributes(Path::new("/"), READ_ONLY, false).during(STEP, "make the root folder read-only")
    }
}

fn tmpfs(path: &Path, options: &str) -> SetupResult<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options)).during(STEP, format!("mount {}", path.display()))
}

/// With everything that is mounted beneath: in a user namespace the kernel does not separate these.
fn bind(source: &Path, target: &Path, attributes: u64) -> SetupResult<()> {
    let what = || format!("mount {}", target.display());
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>).during(STEP, what())?;
    set_attributes(target, attributes, true).during(STEP, what())
}

/// A path to an opened folder, even if its real path is hidden by now.
fn opened(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// The target of a mount, relative to the root folder.
fn inside(target: &Path) -> SetupResult<&Path> {
    let refused = || SetupFailure { step: STEP, what: format!("mount at {}", target.display()), errno: libc::EINVAL };
    let relative = target.strip_prefix("/").map_err(|_| refused())?;
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain && relative.components().next().is_some() { Ok(relative) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::inside;
    use std::path::Path;

    #[test]
    fn targets_are_absolute_and_plain() {
        assert_eq!(inside(Path::new("/opt/cli/claude")).unwrap(), Path::new("opt/cli/claude"));
        for target in ["opt/cli", "/", "/opt/../etc", ""] {
            assert!(inside(Path::new(target)).is_err(), "{target}");
        }
    }
}
