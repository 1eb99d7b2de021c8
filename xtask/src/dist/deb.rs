//! Packs the .deb with dpkg's own tool. Its metadata and scripts are in `packaging/deb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::source::ReleaseSource;
use super::target::{DistTarget, debian_version};
use super::{UNIT, checksums, files};
use crate::repository::{Repository, XtaskResult, cannot_run};
use crate::steps::Steps;

struct PackedFile {
    source: PathBuf,
    /// From the root of the system where it will be installed.
    path: String,
    mode: u32,
}

/// Returns the name of the file.
pub fn pack(
    repository: &Repository,
    target: DistTarget,
    source: &ReleaseSource,
    binary: &Path,
    folder: &Path,
    steps: &Steps,
) -> XtaskResult<String> {
    let (metadata, staging) = (repository.root().join("packaging/deb"), folder.with_file_name("dist-deb"));
    files::recreate(&staging)?;
    let packed = contents(repository.root(), binary);
    let mut kilobytes = 0;
    for file in &packed {
        let destination = staging.join(&file.path);
        files::place(&file.source, &destination, file.mode)?;
        kilobytes += fs::metadata(&destination).map_or(0, |file| file.len().div_ceil(1024));
    }
    let template = metadata.join("control");
    let template =
        fs::read_to_string(&template).map_err(|error| format!("cannot read {}: {error}", template.display()))?;
    let depends = if target.is_static() { String::new() } else { shared_libraries()? };
    let control = fill(
        &template,
        &[
            ("version", &debian_version(&source.version)),
            ("architecture", target.debian_architecture()),
            ("installed_size", &kilobytes.to_string()),
            ("depends", &depends),
        ],
    );
    files::write(&staging.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let paths: Vec<&str> = packed.iter().map(|file| file.path.as_str()).collect();
    let sums = checksums::list("md5sum", &staging, &paths, steps)?;
    files::write(&staging.join("DEBIAN/md5sums"), sums.as_bytes(), 0o644)?;
    for script in ["postinst", "prerm"] {
        files::place(&metadata.join(script), &staging.join("DEBIAN").join(script), 0o755)?;
    }
    let name = target.deb_name(&source.version);
    steps.run("Packing the .deb", &mut dpkg_deb(&staging, source.timestamp, &folder.join(&name)))?;
    files::remove(&staging)?;
    Ok(name)
}

fn contents(root: &Path, binary: &Path) -> Vec<PackedFile> {
    let file = |source: PathBuf, path: String, mode| PackedFile { source, path, mode };
    vec![
        file(binary.to_owned(), "usr/bin/greenroom".into(), 0o755),
        file(root.join("packaging").join(UNIT), format!("usr/lib/systemd/system/{UNIT}"), 0o644),
        // Not in /etc/apparmor.d: AppArmor 3, which has no use for it, could not read it.
        file(root.join("packaging/apparmor/greenroom"), "usr/share/greenroom/apparmor/greenroom".into(), 0o644),
        file(root.join("packaging/deb/copyright"), "usr/share/doc/greenroom/copyright".into(), 0o644),
        file(root.join("README.md"), "usr/share/doc/greenroom/README.md".into(), 0o644),
    ]
}

/// Replaces `{name}` by its value. A line whose value is empty is left out: a field must not be empty.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    for line in template.lines() {
        let mut line = line.to_owned();
        let mut is_empty = false;
        for (name, value) in values {
            let placeholder = format!("{{{name}}}");
            is_empty |= value.is_empty() && line.contains(&placeholder);
            line = line.replace(&placeholder, value);
        }
        if !is_empty {
            lines.push(line + "\n");
        }
    }
    lines.concat()
}

/// A binary that was linked here needs at least the glibc of this machine.
fn shared_libraries() -> XtaskResult<String> {
    let mut getconf = Command::new("getconf");
    getconf.arg("GNU_LIBC_VERSION");
    let output = getconf.output().map_err(|error| cannot_run(&getconf, &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().strip_prefix("glibc ") {
        Some(version) => Ok(format!("libc6 (>= {version}), libgcc-s1")),
        None => Err(format!("`getconf GNU_LIBC_VERSION` prints {:?}; build on a system with glibc", text.trim())),
    }
}

fn dpkg_deb(staging: &Path, timestamp: u64, package: &Path) -> Command {
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", "-Zxz", "--build"]).arg(staging).arg(package);
    // No file in it is younger than this. Compression on several threads would depend on how many there are.
    command.env("SOURCE_DATE_EPOCH", timestamp.to_string()).env("DPKG_DEB_THREADS_MAX", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_without_a_value_is_left_out() {
        let template = "Package: greenroom\nVersion: {version}\nDepends: {depends}\n two {version}\n";
        assert_eq!(
            fill(template, &[("version", "0.1.0"), ("depends", "")]),
            "Package: greenroom\nVersion: 0.1.0\n two 0.1.0\n"
        );
        assert!(fill(template, &[("depends", "libc6 (>= 2.36)")]).contains("Depends: libc6 (>= 2.36)\n"));
    }

    #[test]
    fn the_control_file_has_no_placeholder_left() {
        let template = include_str!("../../../packaging/deb/control");
        let values = [("version", "1"), ("architecture", "amd64"), ("installed_size", "2"), ("depends", "")];
        let filled = fill(template, &values);
        assert!(!filled.contains('{') && !filled.contains("Depends:"), "{filled}");
        assert!(filled.lines().all(|line| line.len() <= 80), "{filled}");
    }

    #[test]
    fn every_packed_file_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let packed = contents(&root, &root.join("Cargo.toml"));
        assert!(packed.iter().all(|file| file.source.is_file()));
        assert!(packed.iter().all(|file| file.path.starts_with("usr/")));
    }
}
