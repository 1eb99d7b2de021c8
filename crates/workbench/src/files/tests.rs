use super::{EntryKind, OpenedEntry, Root, RootError, read_to_limit};
use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Both ways to resolve a path must behave alike.
fn each_way(folder: &Path, check: impl Fn(&Root)) {
    check(&Root::open(folder).unwrap());
    check(&Root::open(folder).unwrap().by_walk());
}

#[test]
fn a_file_is_written_read_renamed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    each_way(folder.path(), |root| {
        root.create_dir_all("a/b", 0o700).unwrap();
        root.create_dir_all("./a/b", 0o700).unwrap();
        root.write("a/b/c.txt", 0o640, b"one").unwrap();
        root.write("a/b/c.txt", 0o600, b"two").unwrap();
        assert_eq!(root.read("a/b/c.txt", 3).unwrap(), b"two");
        assert!(matches!(root.read("a/b/c.txt", 2), Err(RootError::TooLong { limit: 2 })));
        assert_eq!(root.metadata("a/b/c.txt").unwrap().permissions().mode() & 0o777, 0o600);
        root.rename("a/b/c.txt", "a/d.txt").unwrap();
        assert!(root.metadata("a/b/c.txt").unwrap_err().is_not_found());
        root.write("a/b/e.txt", 0o600, b"three").unwrap();
        root.exchange("a/b", "a/d.txt").unwrap();
        assert_eq!(root.read("a/b", 3).unwrap(), b"two");
        assert_eq!(root.open_folder("a").unwrap().read("d.txt/e.txt", 9).unwrap(), b"three");
        root.remove("a").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
    });
}

#[test]
fn a_new_file_appears_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    root.write("file", 0o600, b"old").unwrap();
    let mut partial = root.create("file", 0o600).unwrap();
    partial.write_all(b"new").unwrap();
    assert_eq!(root.read("file", 9).unwrap(), b"old");
    assert_eq!(names(folder.path()).len(), 2, "the temporary file is in the same folder");
    drop(partial);
    assert_eq!(names(folder.path()), ["file"], "dropping removes it");
    let [mut first, mut second] = [(); 2].map(|()| root.create("file", 0o600).unwrap());
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    second.persist().unwrap();
    first.persist().unwrap();
    assert_eq!(root.read("file", 9).unwrap(), b"first", "two writers do not mix");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn partial_files_of_a_killed_server_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    root.write("kept", 0o600, b"").unwrap();
    std::mem::forget(root.create("killed", 0o600).unwrap());
    root.remove_old_partials("", Duration::from_secs(3600), 100).unwrap();
    assert_eq!(names(folder.path()).len(), 2, "another server may be writing it");
    root.remove_old_partials("", Duration::ZERO, 100).unwrap();
    assert_eq!(names(folder.path()), ["kept"]);
}

#[test]
fn a_folder_is_listed_with_the_kinds_of_its_entries_and_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("a"), "x").unwrap();
    symlink("a", folder.path().join("c")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("d"), rustix::fs::Mode::RWXU).unwrap();
    each_way(folder.path(), |root| {
        let all = root.list("", 4).unwrap();
        let kinds: Vec<EntryKind> = all.entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::File, EntryKind::Folder, EntryKind::Link, EntryKind::Special]);
        assert!(!all.is_truncated);
        let some = root.list(".", 3).unwrap();
        assert!(some.is_truncated && some.entries.len() == 3);
        assert!(matches!(root.open_entry("", 4).unwrap(), OpenedEntry::Folder(listing) if listing == all));
        let OpenedEntry::File(file) = root.open_entry("a", 4).unwrap() else { panic!("a file") };
        assert_eq!(read_to_limit(file, 1).unwrap(), b"x");
        assert!(matches!(root.list("a", 4), Err(RootError::NotAFolder)));
        assert!(root.list("none", 4).unwrap_err().is_not_found());
    });
}

#[test]
fn a_root_stays_the_same_folder_when_its_path_leads_elsewhere() {
    let parent = tempfile::tempdir().unwrap();
    let [at, moved] = ["at", "moved"].map(|name| parent.path().join(name));
    fs::create_dir(&at).unwrap();
    let root = Root::open(&at).unwrap();
    fs::rename(&at, &moved).unwrap();
    fs::create_dir(&at).unwrap();
    root.write("file", 0o600, b"x").unwrap();
    assert_eq!((names(&at).len(), names(&moved)), (0, vec!["file".to_owned()]));
    assert!(matches!(Root::open(&moved.join("file")), Err(RootError::NotAFolder)));
    assert!(Root::open(&parent.path().join("none")).unwrap_err().is_not_found());
}

#[test]
fn the_lock_of_a_folder_has_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [(); 2].map(|()| Root::open(folder.path()).unwrap());
    one.try_lock().unwrap();
    assert!(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop(one);
    other.try_lock().unwrap();
}

#[test]
fn errors_keep_their_kind_and_their_source_as_io_errors() {
    let missing = io::Error::from(RootError::from(rustix::io::Errno::NOENT));
    assert_eq!((missing.kind(), missing.raw_os_error()), (io::ErrorKind::NotFound, Some(2)));
    let outside = io::Error::from(RootError::from(rustix::io::Errno::XDEV));
    assert_eq!(outside.kind(), io::ErrorKind::PermissionDenied);
    assert!(outside.get_ref().is_some_and(|source| source.is::<RootError>()));
}
