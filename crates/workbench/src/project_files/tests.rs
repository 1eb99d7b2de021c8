//! The files of a project, with agents that swap folders for links and people who look for a way around the limits.

use super::{DiskQuota, ProjectFiles, ProjectFilesError, ProjectPath, QuotaLimits};
use crate::files::Root;
use std::{
    fs,
    io::{Cursor, Read as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use zip::ZipArchive;

const LIMITS: QuotaLimits = QuotaLimits { bytes: 64 << 20, files: 1000, free_bytes: 0 };

fn files_in(folder: &Path, limits: QuotaLimits) -> ProjectFiles {
    ProjectFiles::open(folder, Arc::new(DiskQuota::default()), limits).unwrap()
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

/// Everything beneath a folder, as paths.
fn all_beneath(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            found.extend(all_beneath(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn files_are_written_listed_moved_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    assert!(files.write(&path("src/a.py"), b"one").unwrap());
    assert!(!files.write(&path("/workspace/src/a.py"), b"two").unwrap(), "it has replaced the first");
    files.write(&path("src/deep/er/b.py"), b"").unwrap();
    let names: Vec<String> =
        files.list(&path("src"), 10).unwrap().entries.into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["deep", "a.py"], "folders first");
    files.rename(&path("src/a.py"), &path("new/b.py")).unwrap();
    assert_eq!(fs::read(folder.path().join("new/b.py")).unwrap(), b"two");
    files.write(&path("c"), b"").unwrap();
    let moved = files.rename(&path("c"), &path("new/b.py")).unwrap_err();
    assert!(matches!(moved, ProjectFilesError::Exists(_)), "{moved}");
    assert!(files.rename(&path("src"), &path("src/deep/x")).is_err(), "a folder is not moved into itself");
    files.remove(&path("src")).unwrap();
    assert!(matches!(files.remove(&path("src")).unwrap_err(), ProjectFilesError::NotFound(_)));
    for file in ["", "/workspace"] {
        assert!(files.remove(&path(file)).is_err() && files.create(&path(file)).is_err());
    }
    assert!(matches!(files.create(&path("new")).unwrap_err(), ProjectFilesError::Exists(_)));
    assert!(matches!(files.create(&path("c/d")).unwrap_err(), ProjectFilesError::NotAFolder(_)));
}

#[test]
fn an_unfinished_file_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    files.write(&path("kept"), b"old").unwrap();
    let mut writer = files.create(&path("kept")).unwrap();
    writer.write(b"new").unwrap();
    assert_eq!(files.list(&path(""), 10).unwrap().entries.len(), 1, "a partial file is not listed");
    drop(writer);
    assert_eq!(fs::read(folder.path().join("kept")).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_quota_holds_while_a_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let quota = Arc::new(DiskQuota::default());
    let limits = QuotaLimits { bytes: 300_000, files: 5, free_bytes: 0 };
    let files = ProjectFiles::open(folder.path(), Arc::clone(&quota), limits).unwrap();
    let other = ProjectFiles::open(folder.path(), quota, limits).unwrap();
    let (mut first, mut second) = (files.create(&path("a")).unwrap(), other.create(&path("b")).unwrap());
    first.write(&[0; 200_000]).unwrap();
    let full = second.write(&[0; 200_000]).unwrap_err();
    assert!(matches!(full, ProjectFilesError::TooManyBytes { limit: 300_000 }), "{full}");
    drop(first);
    second.write(&[0; 200_000]).unwrap();
    second.finish().unwrap();
    for name in ["1", "2", "3"] {
        files.write(&path(name), b"").unwrap();
    }
    let many = files.write(&path("deep/4"), b"").unwrap_err();
    assert!(matches!(many, ProjectFilesError::TooManyFiles { limit: 5 }), "{many}");
    files.remove(&path("1")).unwrap();
    files.remove(&path("2")).unwrap();
    files.write(&path("deep/4"), b"").unwrap();
    // What a command writes is counted too.
    fs::write(folder.path().join("by-command"), vec![1; 400_000]).unwrap();
    let fresh = files_in(folder.path(), limits);
    assert!(matches!(fresh.write(&path("3"), b"x").unwrap_err(), ProjectFilesError::TooManyBytes { .. }));
    let no_space = files_in(folder.path(), QuotaLimits { free_bytes: u64::MAX, ..LIMITS });
    assert!(matches!(no_space.create(&path("x")).unwrap_err(), ProjectFilesError::DiskFull { .. }));
}

/// Every operation, while another thread swaps a folder of the path for a link to the outside.
#[test]
fn invariant_18_beneath_no_operation_follows_a_folder_that_becomes_a_link() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("file"), "secret").unwrap();
    fs::create_dir(outside.path().join("sub")).unwrap();
    fs::write(outside.path().join("sub/inner"), "secret").unwrap();
    let root = place.path().to_owned();
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "mine").unwrap();
    symlink(outside.path(), root.join("other")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (held, stop) = (Root::open(&root).unwrap(), Arc::clone(&stop));
        move || {
            // `dir` is the folder, then the link, then the folder again.
            while !stop.load(Ordering::Relaxed) {
                held.exchange("dir", "other").unwrap();
            }
        }
    });
    let before = all_beneath(outside.path());
    let files = files_in(&root, QuotaLimits { files: u64::MAX / 4, ..LIMITS });
    let (mut reads, mut links, until) = (0_u32, 0_u32, Instant::now() + Duration::from_secs(3));
    while Instant::now() < until {
        match files.open_file(&path("dir/file")) {
            Ok(opened) => {
                reads += 1;
                assert_eq!(std::io::read_to_string(opened.file).unwrap(), "mine");
            }
            Err(ProjectFilesError::Link(_) | ProjectFilesError::NotAFolder(_)) => links += 1,
            Err(_) => {}
        }
        if let Ok(listing) = files.list(&path("dir"), 10) {
            assert!(listing.entries.iter().all(|entry| entry.name != "sub"), "{listing:?}");
        }
        files.write(&path("dir/written"), b"x").ok();
        files.write(&path("dir/made/deep/file"), b"x").ok();
        files.rename(&path("dir/sub"), &path("stolen")).ok();
        files.rename(&path("dir/file"), &path("kept")).ok();
        files.rename(&path("kept"), &path("dir/file")).ok();
        files.remove(&path("dir/sub")).ok();
        files.remove(&path("dir/written")).ok();
        let mut packed = Vec::new();
        files.pack(&path("dir"), &mut packed).ok();
        assert!(!packed.windows(6).any(|part| part == b"secret"));
        assert!(!root.join("stolen").exists());
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(all_beneath(outside.path()), before, "nothing outside was created, moved or removed");
    assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"secret");
    assert!(reads > 0 && links > 0, "it was seen as a folder {reads} times, as a link {links} times");
}

#[test]
fn a_packed_folder_has_its_files_and_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    files.write(&path("site/a.txt"), b"alpha").unwrap();
    files.write(&path("site/deep/b.txt"), b"beta").unwrap();
    files.write(&path("other"), b"x").unwrap();
    symlink("/etc/passwd", folder.path().join("site/link")).unwrap();
    let mut packed = Vec::new();
    files.pack(&path("site"), &mut packed).unwrap();
    let mut archive = ZipArchive::new(Cursor::new(packed)).unwrap();
    assert_eq!(archive.len(), 2);
    let mut content = String::new();
    archive.by_name("deep/b.txt").unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "beta");
    assert!(matches!(files.pack(&path("none"), Vec::new()).unwrap_err(), ProjectFilesError::NotFound(_)));
}

#[test]
fn a_program_stays_executable_when_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    files.write(&path("run"), b"one").unwrap();
    let mode = || fs::metadata(folder.path().join("run")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode() & 0o111, 0);
    fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o4755)).unwrap();
    files.write(&path("run"), b"two").unwrap();
    assert_eq!(mode(), 0o755, "but it does not stay setuid");
}

/// Paths have at most 64 folders, but a folder with folders in it can be moved down again and again.
#[test]
fn nothing_is_hidden_from_the_quota_by_moving_it_down() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    let deep = vec!["d"; 60].join("/");
    files.write(&path(&format!("{deep}/file")), b"x").unwrap();
    for _ in 0..2 {
        files.rename(&path("d"), &path("moved")).unwrap();
        files.rename(&path("moved"), &path(&format!("{deep}/d"))).unwrap();
    }
    let fresh = files_in(folder.path(), LIMITS);
    assert!(matches!(fresh.write(&path("more"), b"x").unwrap_err(), ProjectFilesError::TooManyFiles { .. }));
    fresh.remove(&path("d")).unwrap();
    fresh.write(&path("more"), b"x").unwrap();
}

/// Files that were begun at the same time each give back what they replace, though it was replaced only once.
#[test]
fn the_quota_is_measured_again_during_a_long_upload() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), QuotaLimits { bytes: 40 << 20, ..LIMITS });
    let piece: Vec<u8> = vec![7; 1 << 20];
    let mut long = files.create(&path("long")).unwrap();
    fs::write(folder.path().join("by-command"), vec![7; 30 << 20]).unwrap();
    files.quota.forget();
    let written = (0..40).take_while(|_| long.write(&piece).is_ok()).count();
    assert!(written < 20, "{written} MB");
}

#[test]
fn names_of_files_that_are_being_written_are_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_in(folder.path(), LIMITS);
    files.write(&path("a"), b"x").unwrap();
    for name in [".greenroom-partial-x", "dir/.greenroom-partial-x", ".greenroom-partial-x/file"] {
        assert!(matches!(files.write(&path(name), b"x").unwrap_err(), ProjectFilesError::Path(_)), "{name}");
        assert!(matches!(files.rename(&path("a"), &path(name)).unwrap_err(), ProjectFilesError::Path(_)), "{name}");
    }
    // What a killed server left behind is listed after a day, and can be deleted.
    let left = folder.path().join(".greenroom-partial-left");
    fs::write(&left, b"x").unwrap();
    assert_eq!(files.list(&path(""), 10).unwrap().entries.len(), 1);
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
    assert_eq!(files.list(&path(""), 10).unwrap().entries.len(), 2);
    files.remove(&path(".greenroom-partial-left")).unwrap();
}
