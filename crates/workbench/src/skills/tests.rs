use super::{MARKER, copy, sync};
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    slice::from_ref,
};
use tempfile::TempDir;

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// A skill folder with these files.
    fn skill(&self, name: &str, files: &[(&str, &str)]) -> (String, PathBuf) {
        let folder = self.root.path().join("from").join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        (name.to_owned(), folder)
    }

    fn target(&self) -> PathBuf {
        self.root.path().join("workplace/.claude/skills")
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.target().join(file)).ok()
    }

    /// What a program that looks for skills sees.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.target())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn skills_are_copied_replaced_and_taken_away() {
    let place = Place::new();
    let review = place.skill("review", &[("SKILL.md", "v1"), ("scripts/run.sh", "#!/bin/sh\n"), ("old.md", "x")]);
    let write = place.skill("write", &[("SKILL.md", "w")]);
    fs::set_permissions(review.1.join("scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    sync(&[review.clone(), write.clone()], &place.target(), "someone").unwrap();
    assert_eq!(place.names(), ["review", "write"]);
    assert_eq!(place.read("review/SKILL.md").as_deref(), Some("v1"));
    let mode = fs::metadata(place.target().join("review/scripts/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);

    fs::write(review.1.join("SKILL.md"), "version 2").unwrap();
    fs::remove_file(review.1.join("old.md")).unwrap();
    sync(&[review], &place.target(), "someone").unwrap();
    assert_eq!(place.names(), ["review"]);
    assert_eq!(place.read("review/SKILL.md").as_deref(), Some("version 2"));
    assert_eq!(place.read("review/old.md"), None);

    sync(&[], &place.target(), "someone").unwrap();
    assert!(place.names().is_empty());
}

#[test]
fn what_is_up_to_date_is_not_touched_and_what_was_changed_is_mended() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "one"), ("a/b.md", "two")]);
    let born = || fs::metadata(place.target().join("review")).map(|m| std::os::unix::fs::MetadataExt::ino(&m)).unwrap();
    sync(from_ref(&skill), &place.target(), "someone").unwrap();
    let first = born();
    sync(from_ref(&skill), &place.target(), "someone").unwrap();
    assert_eq!(born(), first);
    fs::write(place.target().join("review/SKILL.md"), "one, but do as I say").unwrap();
    sync(from_ref(&skill), &place.target(), "someone").unwrap();
    assert_eq!(place.read("review/SKILL.md").as_deref(), Some("one"));
    fs::write(place.target().join("review/more.md"), "").unwrap();
    sync(&[skill], &place.target(), "someone").unwrap();
    assert_eq!(place.read("review/more.md"), None);
}

#[test]
fn folders_of_others_are_left_alone() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "ours")]);
    for name in ["review", "mine", ".hidden"] {
        fs::create_dir_all(place.target().join(name)).unwrap();
        fs::write(place.target().join(name).join("SKILL.md"), "theirs").unwrap();
    }
    sync(&[skill], &place.target(), "someone").unwrap();
    sync(&[], &place.target(), "someone").unwrap();
    for name in ["review", "mine", ".hidden"] {
        assert_eq!(place.read(&format!("{name}/SKILL.md")).as_deref(), Some("theirs"));
    }
}

#[test]
fn a_link_in_our_place_is_somebody_elses() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "ours")]);
    let treasure = place.root.path().join("treasure");
    fs::create_dir_all(&treasure).unwrap();
    fs::write(treasure.join(MARKER), "").unwrap();
    fs::create_dir_all(place.target()).unwrap();
    symlink(&treasure, place.target().join("review")).unwrap();
    sync(from_ref(&skill), &place.target(), "someone").unwrap();
    sync(&[], &place.target(), "someone").unwrap();
    assert_eq!(fs::read_dir(&treasure).unwrap().count(), 1);

    let elsewhere = place.root.path().join("link");
    symlink(&treasure, &elsewhere).unwrap();
    assert_eq!(sync(&[skill], &elsewhere, "someone").unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn invariant_16_content_is_data_a_name_cannot_lead_elsewhere() {
    let place = Place::new();
    let (_, folder) = place.skill("x", &[("SKILL.md", "")]);
    for name in ["", ".", "..", "../up", "a/b", "/etc", ".hidden", "a/", "a/.", "new\nline", "nul\0", &"x".repeat(200)]
    {
        let error = sync(&[(name.to_owned(), folder.clone())], &place.target(), "someone").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
    }
    assert!(!place.target().exists());
    let twice = [("x".to_owned(), folder.clone()), ("x".to_owned(), folder)];
    assert_eq!(sync(&twice, &place.target(), "someone").unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn invariant_18_beneath_links_lead_nowhere_but_inside() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "text"), ("sub/a.md", "a")]);
    let secret = place.root.path().join("secret");
    fs::create_dir_all(secret.join("folder")).unwrap();
    fs::write(secret.join("key"), "secret").unwrap();
    let link = |to: &Path, name: &str| symlink(to, skill.1.join(name)).unwrap();
    link(Path::new("sub/a.md"), "inside");
    link(Path::new("../../secret/key"), "outside");
    link(&secret.join("key"), "absolute");
    link(&secret, "folder");
    link(Path::new("."), "circle");
    link(Path::new("nothing"), "dangling");
    rustix::fs::mkfifoat(rustix::fs::CWD, skill.1.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    sync(&[skill], &place.target(), "someone").unwrap();
    assert_eq!(place.read("review/inside").as_deref(), Some("a"));
    let mut there: Vec<_> =
        fs::read_dir(place.target().join("review")).unwrap().map(|e| e.unwrap().file_name()).collect();
    there.sort();
    assert_eq!(there, [MARKER, "SKILL.md", "inside", "sub"]);
}

#[test]
fn invariant_14_limits_a_skill_has_a_size() {
    let place = Place::new();
    let large = place.skill("large", &[("SKILL.md", "")]);
    fs::File::create(large.1.join("big")).unwrap().set_len(copy::MAX_BYTES + 1).unwrap();
    let many = place.skill("many", &[]);
    for number in 0..=copy::MAX_FILES {
        fs::write(many.1.join(number.to_string()), "").unwrap();
    }
    let deep = place.skill("deep", &[("SKILL.md", "")]);
    fs::create_dir_all(deep.1.join("d/".repeat(40))).unwrap();
    for (skill, word) in [(large, "32 MB"), (many, "1000 files"), (deep, "folders deep")] {
        let error = sync(from_ref(&skill), &place.target(), "someone").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains(word) && error.to_string().contains(&skill.0), "{error}");
        assert!(place.names().is_empty());
    }
}

#[test]
fn what_a_crash_left_unfinished_is_taken_away() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "text")]);
    fs::create_dir_all(super::unfinished(&place.target()).join("half")).unwrap();
    sync(&[skill], &place.target(), "someone").unwrap();
    assert_eq!(place.names(), ["review"]);
}

#[test]
fn a_skill_that_is_missing_is_named() {
    let place = Place::new();
    let error = sync(&[("review".into(), place.root.path().join("nowhere"))], &place.target(), "someone").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("review"), "{error}");
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    let skill = place.skill("review", &[("SKILL.md", "text"), ("a.md", "a")]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| sync(from_ref(&skill), &place.target(), "someone").unwrap());
        }
    });
    assert_eq!(place.names(), ["review"]);
    assert_eq!(place.read("review/SKILL.md").as_deref(), Some("text"));
}

#[test]
fn what_was_copied_for_another_stays() {
    let place = Place::new();
    let (review, write) = (place.skill("review", &[("SKILL.md", "r")]), place.skill("write", &[("SKILL.md", "w")]));
    sync(&[review], &place.target(), "one").unwrap();
    sync(&[write], &place.target(), "two").unwrap();
    assert!(place.target().join("review/SKILL.md").exists() && place.target().join("write/SKILL.md").exists());
    sync(&[], &place.target(), "one").unwrap();
    assert!(!place.target().join("review").exists() && place.target().join("write/SKILL.md").exists());
}
