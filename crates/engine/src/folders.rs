//! Where agents work on disk.

use domain::{
    ids::{AgentId, RoomId},
    skill::{SKILL_FILE, document},
};
use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path, PathBuf},
};

/// What is in them is the agents' and the operator's business: nobody else on the machine may look.
const MODE: u32 = 0o700;
/// How much of a skill is read to know what it is for.
const MAX_LOOK: u64 = 256 * 1024;

/// What is in them belongs to the agents.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The data folder.
    pub data: PathBuf,
    /// One folder for all rooms that the operator named, instead of one per room.
    pub workspace: Option<PathBuf>,
}

impl Folders {
    /// A program that works in one of them would take a relative path to another for one of its own.
    pub(crate) fn absolute(self) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self { data: absolute(self.data), workspace: self.workspace.map(absolute) }
    }

    /// Where the agents of a room work.
    pub fn workplace(&self, room: RoomId) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| self.data.join("rooms").join(room.to_string()))
    }

    /// Where an agent's program keeps what it remembers.
    pub fn home(&self, agent: AgentId) -> PathBuf {
        self.data.join("agents").join(agent.to_string())
    }

    /// Where the files that people uploaded lie, each under its id.
    pub(crate) fn uploads(&self) -> PathBuf {
        self.data.join("uploads")
    }

    /// Makes those of the two that are not there yet.
    pub(crate) fn make(&self, room: RoomId, agent: AgentId) -> io::Result<()> {
        for folder in [self.workplace(room), self.home(agent)] {
            DirBuilder::new().recursive(true).mode(MODE).create(folder)?;
        }
        Ok(())
    }

    /// Where a skill lies, if there is one of this name.
    pub(crate) fn skill(&self, name: &str) -> Option<PathBuf> {
        // One plain name, so that it cannot lead anywhere else (invariant 18).
        let mut parts = Path::new(name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
        let folder = self.skills().join(name);
        (plain && !name.contains('\0') && folder.join(SKILL_FILE).is_file()).then_some(folder)
    }

    /// The names of the skills there are.
    pub(crate) fn skill_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.skills()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| self.skill(name).is_some()).collect();
        names.sort_unstable();
        names
    }

    /// The skills there are, with their descriptions.
    pub(crate) fn described_skills(&self) -> Vec<(String, Option<String>)> {
        let describe = |name: String| {
            let mut start = String::new();
            let file = File::open(self.skills().join(&name).join(SKILL_FILE));
            let read = file.and_then(|file| file.take(MAX_LOOK).read_to_string(&mut start));
            let description = read.ok().and_then(|_| document::summary(&start).0);
            (name, description)
        };
        self.skill_names().into_iter().map(describe).collect()
    }

    /// What is only there while a run lasts.
    pub(crate) fn run(&self, name: &str) -> PathBuf {
        self.runs().join(name)
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.data.join("runs")
    }

    fn skills(&self) -> PathBuf {
        self.data.join("skills")
    }
}

#[cfg(test)]
mod tests {
    use super::Folders;
    use domain::ids::{AgentId, RoomId};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn folders_are_made_for_nobody_else_and_once() {
        let data = tempfile::tempdir().unwrap();
        let folders = Folders { data: data.path().join("data"), workspace: None };
        let (room, agent) = (RoomId::generate(), AgentId::generate());
        for _ in 0..2 {
            folders.make(room, agent).unwrap();
        }
        for folder in [folders.workplace(room), folders.home(agent), data.path().join("data/rooms")] {
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        }
        fs::write(data.path().join("file"), "").unwrap();
        let blocked = Folders { data: data.path().join("file"), workspace: None };
        assert!(blocked.make(room, agent).is_err());
    }

    #[test]
    fn they_are_the_same_wherever_one_works() {
        let folders = Folders { data: "data".into(), workspace: Some("here".into()) }.absolute();
        let (room, agent) = (RoomId::generate(), AgentId::generate());
        assert!(folders.home(agent).is_absolute() && folders.workplace(room).is_absolute());
        assert!(folders.workplace(room).ends_with("here"));
    }

    #[test]
    fn a_skill_is_a_folder_with_its_file_and_nothing_outside_is_one() {
        let data = tempfile::tempdir().unwrap();
        for folder in ["skills/review", "skills/empty", "outside"] {
            fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        for file in ["skills/review/SKILL.md", "outside/SKILL.md", "skills/SKILL.md"] {
            fs::write(data.path().join(file), "# It").unwrap();
        }
        let folders = Folders { data: data.path().to_owned(), workspace: None };
        assert_eq!(folders.skill("review"), Some(data.path().join("skills/review")));
        for name in ["empty", "nothing", "", ".", "..", "../outside", "review/", "review/.", "./review", "re\0view"] {
            assert_eq!(folders.skill(name), None, "{name:?}");
        }
        let absolute = data.path().join("outside");
        assert_eq!(folders.skill(absolute.to_str().unwrap()), None);
        assert_eq!(folders.skill_names(), ["review"]);
    }
}
