//! Programs outside of the system's folders, such as a coding CLI in somebody's home: what is mounted for them, read-only,
//! and where they are inside.

use sandbox::BindMount;
use sha2::{Digest as _, Sha256};
use std::{
    ffi::OsStr,
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// Where programs are mounted. Not at their own paths: these name users of this machine.
pub const GUEST_PROGRAMS: &str = "/opt/programs";

/// Every sandbox has these, see `crates/sandbox/src/init/root.rs`.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];
const NODE_MODULES: &str = "node_modules";
/// Longer lines are not executed by the kernel either.
const MAX_SHEBANG_BYTES: u64 = 256;

/// A program and what it needs inside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountedProgram {
    /// Its path inside.
    pub guest_path: PathBuf,
    pub mounts: Vec<BindMount>,
    /// Folders inside that its interpreter is in, for `PATH`.
    pub search_path: Vec<PathBuf>,
}

impl MountedProgram {
    /// `program` is a path of this machine; links are resolved. `search_path` is the server's `PATH`, where the interpreter of
    /// a script is looked for. Blocking; reads the start of the file.
    pub fn find(program: &Path, search_path: Option<&OsStr>) -> std::io::Result<Self> {
        let real = program.canonicalize()?;
        let mut found = Self::of(&real);
        let interpreter = interpreter(&real).and_then(|name| {
            std::env::split_paths(search_path?).map(|folder| folder.join(&name)).find(|file| file.is_file())
        });
        if let Some(interpreter) = interpreter.and_then(|file| file.canonicalize().ok()) {
            let interpreter = Self::of(&interpreter);
            if !interpreter.mounts.is_empty() {
                found.search_path.extend(interpreter.guest_path.parent().map(Path::to_owned));
                found.mounts.extend(interpreter.mounts);
            }
        }
        Ok(found)
    }

    fn of(real: &Path) -> Self {
        if SYSTEM.iter().any(|folder| real.starts_with(folder)) {
            return Self { guest_path: real.to_owned(), mounts: Vec::new(), search_path: Vec::new() };
        }
        // A package of npm needs the packages beside it; anything else is a file that stands alone.
        let source = package_tree(real).unwrap_or_else(|| real.to_owned());
        let name = source.file_name().unwrap_or(OsStr::new("program"));
        let target = Path::new(GUEST_PROGRAMS).join(folder_name(&source)).join(name);
        let guest_path = match real.strip_prefix(&source) {
            Ok(rest) if !rest.as_os_str().is_empty() => target.join(rest),
            _ => target.clone(),
        };
        Self { guest_path, mounts: vec![BindMount { source, target }], search_path: Vec::new() }
    }
}

/// The outermost `node_modules` that a file is in.
fn package_tree(file: &Path) -> Option<PathBuf> {
    let mut tree = PathBuf::new();
    for part in file.components() {
        tree.push(part);
        if part == Component::Normal(OsStr::new(NODE_MODULES)) {
            return Some(tree);
        }
    }
    None
}

/// The same for the same path in every sandbox.
fn folder_name(source: &Path) -> String {
    let digest = Sha256::digest(source.as_os_str().as_encoded_bytes());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// The name in `#!/usr/bin/env name`.
fn interpreter(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(MAX_SHEBANG_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    Path::new(words.next()?).ends_with("env").then_some(())?;
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{GUEST_PROGRAMS, MountedProgram};
    use std::{ffi::OsStr, fs, os::unix::fs::symlink, path::Path};

    #[test]
    fn programs_of_the_system_need_no_mount() {
        let found = MountedProgram::find(Path::new("/bin/sh"), None).unwrap();
        assert!(found.mounts.is_empty() && found.guest_path.is_absolute(), "{found:?}");
        assert!(MountedProgram::find(Path::new("/no/such/program"), None).is_err());
    }

    #[test]
    fn a_single_file_is_mounted_alone() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().canonicalize().unwrap().join("claude");
        fs::write(&program, "\u{7f}ELF").unwrap();
        symlink(&program, folder.path().join("link")).unwrap();
        let found = MountedProgram::find(&folder.path().join("link"), None).unwrap();
        assert_eq!(found.mounts.len(), 1);
        assert_eq!((&found.mounts[0].source, &found.mounts[0].target), (&program, &found.guest_path));
        assert!(found.guest_path.starts_with(GUEST_PROGRAMS) && found.guest_path.ends_with("claude"));
    }

    #[test]
    fn a_package_is_mounted_with_its_neighbors_and_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let script = root.join("node_modules/@vendor/cli/bundle/cli.js");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, "#!/usr/bin/env -S node --no-warnings\n").unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/node"), "").unwrap();
        let search = std::env::join_paths([root.join("empty"), root.join("bin")]).unwrap();
        let found = MountedProgram::find(&script, Some(&search)).unwrap();
        let sources: Vec<_> = found.mounts.iter().map(|mount| mount.source.clone()).collect();
        assert_eq!(sources, [root.join("node_modules"), root.join("bin/node")]);
        assert!(found.guest_path.ends_with("node_modules/@vendor/cli/bundle/cli.js"), "{found:?}");
        assert_eq!(found.search_path, [found.mounts[1].target.parent().unwrap()]);
        assert!(MountedProgram::find(&script, Some(OsStr::new("/nowhere"))).unwrap().search_path.is_empty());
    }
}
