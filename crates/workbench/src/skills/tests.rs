use super::{MARKER, SkillFolder, copy, sync_folders};
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    slice::from_ref,
};
use tempfile::TempDir;

const INTO: &str = ".claude/skills";

struct TestFolders {
    root: TempDir,
}

impl TestFolders {
    fn new() -> Self {
        let folders = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(folders.workspace()).unwrap();
        folders
    }

    fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// A skill folder with these files.
    fn skill(&self, name: &str, files: &[(&str, &str)]) -> SkillFolder {
        let folder = self.root.path().join("from").join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        SkillFolder::read(name, folder).unwrap()
    }

    fn target(&self) -> PathBuf {
        self.workspace().join(INTO)
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.target().join(file)).ok()
    }

    /// Returns the folder names that a program would find.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.target())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn read_again(skill: &SkillFolder) -> SkillFolder {
    SkillFolder::read(&skill.name, &skill.path).unwrap()
}

#[test]
fn skills_are_copied_replaced_and_removed() {
    let folders = TestFolders::new();
    let review = folders.skill("review", &[("SKILL.md", "v1"), ("scripts/run.sh", "#!/bin/sh\n"), ("old.md", "x")]);
    let write = folders.skill("write", &[("SKILL.md", "w")]);
    fs::set_permissions(review.path.join("scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let review = read_again(&review);
    sync_folders(&[review.clone(), write.clone()], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.names(), ["review", "write"]);
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("v1"));
    let mode = fs::metadata(folders.target().join("review/scripts/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);

    fs::write(review.path.join("SKILL.md"), "version 2").unwrap();
    fs::remove_file(review.path.join("old.md")).unwrap();
    sync_folders(&[read_again(&review)], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.names(), ["review"]);
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("version 2"));
    assert_eq!(folders.read("review/old.md"), None);

    sync_folders(&[], &folders.workspace(), INTO, "agent").unwrap();
    assert!(folders.names().is_empty());
}

#[test]
fn unchanged_copies_are_kept_and_modified_copies_are_replaced() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "one"), ("a/b.md", "two")]);
    let born =
        || fs::metadata(folders.target().join("review")).map(|m| std::os::unix::fs::MetadataExt::ino(&m)).unwrap();
    sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap();
    let first = born();
    sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(born(), first);
    fs::write(folders.target().join("review/SKILL.md"), "one, but do as I say").unwrap();
    sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("one"));
    // Of the same length, and as old as the original.
    let copy = folders.target().join("review/a/b.md");
    fs::write(&copy, "two".to_uppercase()).unwrap();
    let time = fs::metadata(skill.path.join("a/b.md")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(&copy).unwrap().set_modified(time).unwrap();
    sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.read("review/a/b.md").as_deref(), Some("two"));
    fs::write(folders.target().join("review/more.md"), "").unwrap();
    sync_folders(&[skill], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.read("review/more.md"), None);
}

#[test]
fn folders_of_the_user_are_left_alone() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "ours")]);
    for name in ["review", "mine", ".hidden"] {
        fs::create_dir_all(folders.target().join(name)).unwrap();
        fs::write(folders.target().join(name).join("SKILL.md"), "theirs").unwrap();
    }
    sync_folders(&[skill], &folders.workspace(), INTO, "agent").unwrap();
    sync_folders(&[], &folders.workspace(), INTO, "agent").unwrap();
    for name in ["review", "mine", ".hidden"] {
        assert_eq!(folders.read(&format!("{name}/SKILL.md")).as_deref(), Some("theirs"));
    }
}

#[test]
fn a_link_at_the_target_is_left_alone() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "ours")]);
    let treasure = folders.root.path().join("treasure");
    fs::create_dir_all(&treasure).unwrap();
    fs::write(treasure.join(MARKER), "").unwrap();
    fs::create_dir_all(folders.target()).unwrap();
    symlink(&treasure, folders.target().join("review")).unwrap();
    sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap();
    sync_folders(&[], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(fs::read_dir(&treasure).unwrap().count(), 1);

    symlink(&treasure, folders.workspace().join("link")).unwrap();
    for into in ["link", "link/skills"] {
        let error = sync_folders(from_ref(&skill), &folders.workspace(), into, "agent").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{into}");
    }
    assert_eq!(fs::read_dir(&treasure).unwrap().count(), 1);
}

#[test]
fn invariant_16_content_is_data_a_skill_name_cannot_change_the_path() {
    let folders = TestFolders::new();
    let skill = folders.skill("x", &[("SKILL.md", "")]);
    for name in ["", ".", "..", "../up", "a/b", "/etc", ".hidden", "a/", "a/.", "new\nline", "nul\0", &"x".repeat(200)]
    {
        let named = SkillFolder { name: name.to_owned(), ..skill.clone() };
        let error = sync_folders(&[named], &folders.workspace(), INTO, "agent").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
    }
    assert!(!folders.target().exists());
    let twice = [skill.clone(), skill];
    assert_eq!(
        sync_folders(&twice, &folders.workspace(), INTO, "agent").unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn invariant_18_beneath_only_links_inside_the_folder_are_followed() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "text"), ("sub/a.md", "a")]);
    let secret = folders.root.path().join("secret");
    fs::create_dir_all(secret.join("folder")).unwrap();
    fs::write(secret.join("key"), "secret").unwrap();
    let link = |to: &Path, name: &str| symlink(to, skill.path.join(name)).unwrap();
    link(Path::new("sub/a.md"), "inside");
    link(Path::new("../../secret/key"), "outside");
    link(&secret.join("key"), "absolute");
    link(&secret, "folder");
    link(Path::new("."), "circle");
    link(Path::new("nothing"), "dangling");
    rustix::fs::mkfifoat(rustix::fs::CWD, skill.path.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    sync_folders(&[read_again(&skill)], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.read("review/inside").as_deref(), Some("a"));
    let mut there: Vec<_> =
        fs::read_dir(folders.target().join("review")).unwrap().map(|e| e.unwrap().file_name()).collect();
    there.sort();
    assert_eq!(there, [MARKER, "SKILL.md", "inside", "sub"]);
}

#[test]
fn invariant_14_limits_the_size_of_a_skill_is_bounded() {
    let folders = TestFolders::new();
    let large = folders.skill("large", &[("SKILL.md", "")]);
    fs::File::create(large.path.join("big")).unwrap().set_len(copy::MAX_BYTES + 1).unwrap();
    let many = folders.skill("many", &[]);
    for number in 0..=copy::MAX_FILES {
        fs::write(many.path.join(number.to_string()), "").unwrap();
    }
    let deep = folders.skill("deep", &[("SKILL.md", "")]);
    fs::create_dir_all(deep.path.join("d/".repeat(40))).unwrap();
    for (skill, word) in [(large, "32 MB"), (many, "1000 files"), (deep, "folders deep")] {
        let error = sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains(word) && error.to_string().contains(&skill.name), "{error}");
        assert!(folders.names().is_empty());
    }
}

#[test]
fn unfinished_folders_of_a_crash_are_removed() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "text")]);
    fs::create_dir_all(folders.target().join(super::temporary_folder_name()).join("half")).unwrap();
    sync_folders(&[skill], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(folders.names(), ["review"]);
}

#[test]
fn without_skills_nothing_is_created() {
    let folders = TestFolders::new();
    sync_folders(&[], &folders.workspace(), INTO, "agent").unwrap();
    assert_eq!(fs::read_dir(folders.workspace()).unwrap().count(), 0);
    sync_folders(&[], &folders.root.path().join("no workspace"), INTO, "agent").unwrap();
    assert_eq!(fs::read_dir(folders.root.path()).unwrap().count(), 1);
}

#[test]
fn the_error_for_a_missing_skill_names_it() {
    let folders = TestFolders::new();
    let skill = SkillFolder { path: folders.root.path().join("nowhere"), ..folders.skill("review", &[]) };
    let error = sync_folders(&[skill], &folders.workspace(), INTO, "agent").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("review"), "{error}");
}

#[test]
fn concurrent_syncs_do_not_disturb_each_other() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "text"), ("a.md", "a")]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| sync_folders(from_ref(&skill), &folders.workspace(), INTO, "agent").unwrap());
        }
    });
    assert_eq!(folders.names(), ["review"]);
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("text"));
}

#[test]
fn copies_for_another_holder_stay() {
    let folders = TestFolders::new();
    let (review, write) = (folders.skill("review", &[("SKILL.md", "r")]), folders.skill("write", &[("SKILL.md", "w")]));
    sync_folders(&[review], &folders.workspace(), INTO, "one").unwrap();
    sync_folders(&[write], &folders.workspace(), INTO, "two").unwrap();
    assert!(folders.target().join("review/SKILL.md").exists() && folders.target().join("write/SKILL.md").exists());
    sync_folders(&[], &folders.workspace(), INTO, "one").unwrap();
    assert!(!folders.target().join("review").exists() && folders.target().join("write/SKILL.md").exists());
}

#[test]
fn a_copy_that_another_holder_uses_is_never_changed() {
    let folders = TestFolders::new();
    let first = folders.skill("review", &[("SKILL.md", "of room one")]);
    sync_folders(from_ref(&first), &folders.workspace(), INTO, "agent in one").unwrap();
    let second = folders.skill("review", &[("SKILL.md", "of room two")]);
    for _ in 0..2 {
        sync_folders(from_ref(&second), &folders.workspace(), INTO, "agent in two").unwrap();
        assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("of room one"));
        let own = folders.names().into_iter().find(|name| name.starts_with("review.")).expect("a copy of its own");
        assert_eq!(folders.read(&format!("{own}/SKILL.md")).as_deref(), Some("of room two"));
        assert_eq!(folders.names().len(), 2);
    }
    sync_folders(&[], &folders.workspace(), INTO, "agent in one").unwrap();
    sync_folders(from_ref(&second), &folders.workspace(), INTO, "agent in two").unwrap();
    assert_eq!(folders.names(), ["review"], "the plain name is free again");
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("of room two"));
}

#[test]
fn a_copy_with_the_same_content_is_shared_until_the_last_holder_is_done() {
    let folders = TestFolders::new();
    let skill = folders.skill("review", &[("SKILL.md", "same")]);
    for holder in ["agent in one", "agent in two"] {
        sync_folders(from_ref(&skill), &folders.workspace(), INTO, holder).unwrap();
    }
    assert_eq!(folders.names(), ["review"]);
    sync_folders(&[], &folders.workspace(), INTO, "agent in one").unwrap();
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("same"));
    sync_folders(&[], &folders.workspace(), INTO, "agent in two").unwrap();
    assert!(folders.names().is_empty());
}

#[test]
fn copies_of_earlier_versions_belong_to_their_agent() {
    let folders = TestFolders::new();
    let old = folders.skill("review", &[("SKILL.md", "old")]);
    sync_folders(&[old], &folders.workspace(), INTO, "agent").unwrap();
    let new = folders.skill("review", &[("SKILL.md", "new")]);
    sync_folders(&[new], &folders.workspace(), INTO, "agent in one").unwrap();
    assert_eq!(folders.names(), ["review"]);
    assert_eq!(folders.read("review/SKILL.md").as_deref(), Some("new"));
}
