//! What an agent could put into its folder to get at a file outside, for both ways to resolve a path.

use super::{MAX_PATH_DEPTH, Root, RootError};
use proptest::prelude::*;
use std::{
    ffi::{OsStr, OsString},
    fs,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const SECRET: &str = "secret";

/// `inside` with a file and a folder, and `outside` with a secret.
struct Scene {
    folder: TempDir,
    inside: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| folder.path().join(name));
        fs::create_dir_all(inside.join("folder")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(inside.join("folder/file"), "content").unwrap();
        fs::write(outside.join("file"), SECRET).unwrap();
        Self { folder, inside, outside }
    }

    fn link(&self, to: impl AsRef<Path>, name: &str) {
        symlink(to, self.inside.join(name)).unwrap();
    }

    fn strict(&self) -> [Root; 2] {
        [Root::open(&self.inside).unwrap(), Root::open(&self.inside).unwrap().by_walk()]
    }

    fn following(&self) -> [Root; 2] {
        let root = || Root::open_following_links(&self.inside).unwrap();
        [root(), root().by_walk()]
    }

    fn all(&self) -> Vec<Root> {
        self.strict().into_iter().chain(self.following()).collect()
    }

    /// Everything outside is as it was.
    fn assert_unharmed(&self) {
        let outside: Vec<_> = fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(outside, ["file"]);
        assert_eq!(fs::read_to_string(self.outside.join("file")).unwrap(), SECRET);
    }
}

#[test]
fn invariant_18_beneath_paths_that_are_not_plain_are_refused() {
    let scene = Scene::new();
    let deep: PathBuf = (0..=MAX_PATH_DEPTH).map(|_| "folder").collect();
    let long: PathBuf = (0..20).map(|_| "x".repeat(250)).collect();
    let absolute = scene.inside.join("folder/file");
    let paths = [Path::new(".."), "../outside/file".as_ref(), "folder/../../outside/file".as_ref()];
    let further: [&Path; 5] = ["/etc/passwd".as_ref(), &absolute, "a\0b".as_ref(), &deep, &long];
    for root in scene.all() {
        for path in paths.into_iter().chain(further) {
            assert!(matches!(root.open_file(path), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.metadata(path), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.list(path, 1), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.write(path, 0o600, b""), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.create_dir_all(path, 0o700), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.remove(path), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.rename(path, "x"), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.rename("folder", path), Err(RootError::InvalidPath)), "{path:?}");
        }
        // The root itself can neither be replaced nor removed.
        for path in ["", ".", "./."] {
            assert!(matches!(root.remove(path), Err(RootError::InvalidPath)), "{path:?}");
            assert!(matches!(root.write(path, 0o600, b""), Err(RootError::InvalidPath)), "{path:?}");
        }
        let too_long = root.open_file("x".repeat(300)).unwrap_err();
        assert!(matches!(too_long, RootError::Io(error) if error.raw_os_error() == Some(36)), "ENAMETOOLONG");
    }
    scene.assert_unharmed();
}

#[test]
fn invariant_18_beneath_links_out_of_the_folder_are_not_followed() {
    let scene = Scene::new();
    scene.link(scene.outside.join("file"), "absolute");
    scene.link("../outside/file", "relative");
    scene.link(&scene.outside, "away");
    scene.link("folder/../../outside/file", "roundabout");
    scene.link("relative", "chain");
    scene.link("chain", "longer-chain");
    symlink("..", scene.inside.join("folder/up")).unwrap();
    scene.link("folder/up/../outside/file", "up-and-out");
    // It leads to a file inside, but starts at the root of the machine.
    scene.link(scene.inside.join("folder/file"), "absolute-inside");
    let paths =
        ["absolute", "relative", "away/file", "roundabout", "chain", "longer-chain", "up-and-out", "absolute-inside"];
    for (is_strict, roots) in [(true, scene.strict()), (false, scene.following())] {
        for root in roots {
            for path in paths {
                let error = root.open_file(path).unwrap_err();
                let is_expected = matches!((is_strict, &error), (true, RootError::Link) | (false, RootError::Outside));
                assert!(is_expected, "{path}: {error:?}");
            }
            assert!(root.list("away", 9).is_err() && root.open_folder("away").is_err());
            assert!(root.write("away/new", 0o600, b"").is_err());
            assert!(root.create_dir_all("away/new", 0o700).is_err());
            assert!(root.remove("away/file").is_err());
            assert!(root.rename("folder/file", "away/file").is_err());
            assert!(root.rename("away/file", "stolen").is_err());
            assert!(root.exchange("away/file", "folder/file").is_err());
        }
    }
    scene.assert_unharmed();
}

#[test]
fn links_beneath_the_folder_are_followed_only_if_asked_for() {
    let scene = Scene::new();
    scene.link("folder/file", "to-file");
    scene.link("folder", "to-folder");
    scene.link("to-folder/file", "chain");
    symlink("../to-file", scene.inside.join("folder/up")).unwrap();
    scene.link("folder/../folder/./file", "dots");
    for path in ["to-file", "to-folder/file", "chain", "folder/up", "dots"] {
        for root in scene.strict() {
            assert!(matches!(root.read(path, 9), Err(RootError::Link)), "{path}");
        }
        for root in scene.following() {
            assert_eq!(root.read(path, 9).unwrap(), b"content", "{path}");
        }
    }
    for root in scene.following() {
        root.create_dir_all("to-folder/new", 0o700).unwrap();
        root.write("to-folder/new/file", 0o600, b"new").unwrap();
        assert_eq!(fs::read(scene.inside.join("folder/new/file")).unwrap(), b"new");
    }
}

#[test]
fn circles_and_dangling_links_end() {
    let scene = Scene::new();
    scene.link("self", "self");
    scene.link("b", "a");
    scene.link("a", "b");
    scene.link("nothing", "dangling");
    for number in 0..50 {
        scene.link(format!("long{}", number + 1), &format!("long{number}"));
    }
    scene.link("folder/file", "long50");
    for root in scene.all() {
        for path in ["self", "a", "a/b", "long0"] {
            assert!(matches!(root.open_file(path), Err(RootError::Link)), "{path}");
        }
    }
    for root in scene.following() {
        assert!(root.open_file("dangling").unwrap_err().is_not_found());
        assert_eq!(root.read("long20", 9).unwrap(), b"content", "30 links are not too many");
    }
}

#[test]
fn a_write_replaces_a_link_and_what_it_leads_to_stays() {
    let scene = Scene::new();
    for root in scene.all() {
        scene.link(scene.outside.join("file"), "link");
        root.write("link", 0o600, b"mine").unwrap();
        assert_eq!(root.read("link", 9).unwrap(), b"mine");
        root.remove("link").unwrap();
        scene.link(&scene.outside, "link");
        assert!(root.metadata("link").unwrap().is_symlink());
        root.remove("link").unwrap();
        // Removing a folder removes the links in it.
        symlink(&scene.outside, scene.inside.join("folder/away")).unwrap();
        fs::create_dir_all(scene.inside.join("folder/deep/deeper")).unwrap();
        symlink(scene.outside.join("file"), scene.inside.join("folder/deep/deeper/link")).unwrap();
        root.rename("folder", "other").unwrap();
        root.remove("other").unwrap();
        root.create_dir_all("folder", 0o700).unwrap();
        scene.assert_unharmed();
    }
}

fn open_folder(parent: BorrowedFd<'_>, path: &Path) -> OwnedFd {
    use rustix::fs::{Mode, OFlags, openat};
    openat(parent, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

#[test]
fn m8_a_folder_of_any_depth_is_removed() {
    let scene = Scene::new();
    for root in scene.all() {
        for tree in ["deep", "deep/lifted-1"] {
            fs::create_dir(scene.inside.join(tree)).unwrap();
            // One by one: a path to all of them is longer than the system allows.
            let mut folder = open_folder(rustix::fs::CWD, &scene.inside.join(tree));
            for _ in 0..700 {
                rustix::fs::mkdirat(&folder, "a-folder", rustix::fs::Mode::RWXU).unwrap();
                folder = open_folder(folder.as_fd(), "a-folder".as_ref());
            }
        }
        root.remove("deep").unwrap();
        assert!(root.metadata("deep").unwrap_err().is_not_found());
        scene.assert_unharmed();
    }
}

#[test]
fn special_files_are_refused_and_never_block() {
    let scene = Scene::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.inside.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let _listener = UnixListener::bind(scene.inside.join("socket")).unwrap();
    for root in scene.all() {
        for path in ["pipe", "socket", "folder"] {
            assert!(matches!(root.open_file(path), Err(RootError::NotAFile)), "{path}");
        }
        assert!(matches!(root.open_entry("pipe", 1), Err(RootError::NotAFile)));
        assert!(matches!(root.open_file("folder/file/x"), Err(RootError::NotAFolder)));
    }
    let devices = [Root::open(Path::new("/dev")).unwrap(), Root::open(Path::new("/dev")).unwrap().by_walk()];
    for root in devices {
        assert!(matches!(root.open_file("null"), Err(RootError::NotAFile)));
    }
}

#[test]
fn magic_links_of_proc_are_not_followed() {
    let secret = Scene::new();
    let held = fs::File::open(secret.outside.join("file")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&held).to_string();
    let proc = Path::new("/proc/self/fd");
    for root in [Root::open_following_links(proc).unwrap(), Root::open_following_links(proc).unwrap().by_walk()] {
        let error = root.open_file(&number).unwrap_err();
        assert!(matches!(error, RootError::Link | RootError::Outside), "{error:?}");
    }
    let proc = Path::new("/proc/self");
    for root in [Root::open_following_links(proc).unwrap(), Root::open_following_links(proc).unwrap().by_walk()] {
        for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe"] {
            let error = root.open_file(path).unwrap_err();
            assert!(matches!(error, RootError::Link | RootError::Outside), "{path}: {error:?}");
        }
    }
}

#[test]
fn names_need_not_be_text() {
    let scene = Scene::new();
    let name = OsStr::from_bytes(b"\xff\n\x1b[2J\\ \x80");
    for root in scene.all() {
        root.write(name, 0o600, b"x").unwrap();
        assert_eq!(root.read(name, 1).unwrap(), b"x");
        assert!(root.list("", 9).unwrap().entries.iter().any(|entry| entry.name == name));
        root.remove(name).unwrap();
        let longest = "é".repeat(127);
        root.write(&longest, 0o600, b"x").unwrap();
        root.remove(longest).unwrap();
    }
}

/// A hard link is the file: see the head of the module.
#[test]
fn a_hard_link_is_read_as_the_file_that_it_is() {
    let scene = Scene::new();
    fs::hard_link(scene.outside.join("file"), scene.inside.join("hard")).unwrap();
    for root in scene.strict() {
        assert_eq!(root.read("hard", 9).unwrap(), SECRET.as_bytes());
        // A write makes a new file: the other name keeps its content.
        root.write("hard", 0o600, b"mine").unwrap();
        scene.assert_unharmed();
        root.remove("hard").unwrap();
        fs::hard_link(scene.outside.join("file"), scene.inside.join("hard")).unwrap();
    }
}

#[test]
fn invariant_18_beneath_a_folder_that_turns_into_a_link_shows_nothing_outside() {
    let scene = Scene::new();
    // Renaming is atomic, so that at each moment `swapped` is either the folder or the link.
    scene.link(&scene.outside, "link");
    fs::create_dir_all(scene.inside.join("swapped")).unwrap();
    fs::write(scene.inside.join("swapped/file"), "content").unwrap();
    let ended = AtomicBool::new(false);
    let swap = || {
        let root = Root::open(&scene.inside).unwrap();
        while !ended.load(Ordering::Relaxed) {
            root.exchange("swapped", "link").unwrap();
        }
    };
    let (mut read, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(swap);
        let deadline = Instant::now() + Duration::from_secs(20);
        let roots = scene.all();
        // Long enough to have met both states often.
        while (read < 2000 || refused < 2000) && Instant::now() < deadline {
            for root in &roots {
                match root.read("swapped/file", 100) {
                    Ok(content) => {
                        assert_eq!(content, b"content");
                        read += 1;
                    }
                    Err(RootError::Link | RootError::Outside) => refused += 1,
                    // The walk finds a link where a moment later there is none.
                    Err(RootError::NotAFolder) => {}
                    Err(error) => panic!("{error:?}"),
                }
                drop(root.write("swapped/new", 0o600, b"new"));
                drop(root.remove("swapped/new"));
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    scene.assert_unharmed();
}

#[derive(Clone, Debug)]
enum Planted {
    Folder,
    File,
    Link(OsString),
}

fn planted() -> impl Strategy<Value = (OsString, Planted)> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    let part = prop_oneof![Just(".."), Just("."), Just("a"), Just("b"), Just("c"), Just("outside"), Just("file")];
    let target = (proptest::bool::weighted(0.1), prop::collection::vec(part, 1..6)).prop_map(|(absolute, parts)| {
        let path: PathBuf = parts.iter().collect();
        if absolute { Path::new("/").join(path).into_os_string() } else { path.into_os_string() }
    });
    let what = prop_oneof![Just(Planted::Folder), Just(Planted::File), target.prop_map(Planted::Link)];
    let path = prop::collection::vec(name, 1..4).prop_map(|parts| parts.iter().collect::<PathBuf>().into_os_string());
    (path, what)
}

fn name_in_path() -> impl Strategy<Value = OsString> {
    prop::sample::select(vec!["a", "b", "c", "file", "..", "\u{ff}"]).prop_map(OsString::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random trees of folders, files and links: no path shows the secret, and both ways to resolve agree.
    #[test]
    fn invariant_18_beneath_no_tree_of_links_shows_a_file_outside(
        tree in prop::collection::vec(planted(), 1..12),
        paths in prop::collection::vec(prop::collection::vec(name_in_path(), 0..5), 1..12),
    ) {
        let scene = Scene::new();
        for (path, what) in tree {
            let at = scene.inside.join(path);
            // What does not fit into the tree is left out, and nothing is planted through a link.
            let is_in_the_tree = at.parent().and_then(|parent| parent.canonicalize().ok()).is_some_and(|parent| {
                parent.starts_with(scene.inside.canonicalize().unwrap())
            });
            if !is_in_the_tree {
                continue;
            }
            drop(match what {
                Planted::Folder => fs::create_dir(at),
                Planted::File => if at.symlink_metadata().is_ok() { Ok(()) } else { fs::write(at, "content") },
                Planted::Link(to) => symlink(to, at),
            });
        }
        for path in paths {
            let path: PathBuf = path.into_iter().collect();
            for [kernel, walk] in [scene.strict(), scene.following()] {
                let (kernel, walk) = (kernel.read(&path, 100), walk.read(&path, 100));
                prop_assert_eq!(kernel.as_ref().ok(), walk.as_ref().ok(), "{:?} {:?} {:?}", path, kernel, walk);
                for content in [kernel, walk].into_iter().flatten() {
                    prop_assert_ne!(content, SECRET.as_bytes(), "{:?}", path);
                }
            }
            for root in scene.all() {
                drop(root.write(path.join("new"), 0o600, b"new"));
                drop(root.create_dir_all(path.join("folder"), 0o700));
                drop(root.remove(&path));
                scene.assert_unharmed();
            }
        }
        prop_assert!(scene.folder.path().read_dir().unwrap().count() == 2, "nothing new beside the folder");
    }
}
