//! The folders of the data directory in which agents work.

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

/// Other users of the machine may not read the folders.
const FOLDER_MODE: u32 = 0o700;
/// How much of a `SKILL.md` is read to find its description.
const MAX_SUMMARY_BYTES: u64 = 256 * 1024;

/// Computes the paths of the folders; their content belongs to the agents.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The data folder.
    pub data: PathBuf,
    /// A folder set by the operator that all rooms share, instead of one per room.
    pub shared_workspace: Option<PathBuf>,
}

impl Folders {
    /// Makes all paths absolute: a program would resolve a relative one against its own working directory.
    pub(crate) fn absolute(self) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self { data: absolute(self.data), shared_workspace: self.shared_workspace.map(absolute) }
    }

    /// The folder of a room without a project.
    pub fn workspace(&self, room: RoomId) -> PathBuf {
        self.shared_workspace.clone().unwrap_or_else(|| self.data.join("rooms").join(room.to_string()))
    }

    /// The home folder of an agent's program, for its own state.
    pub fn agent_home(&self, agent: AgentId) -> PathBuf {
        self.data.join("agents").join(agent.to_string())
    }

    /// The folder of uploaded files, each named by its id.
    pub(crate) fn uploads_folder(&self) -> PathBuf {
        self.data.join("uploads")
    }

    /// Creates a folder and its parents, as far as they are missing.
    pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
    }

    /// The folder of a skill, if one of this name exists.
    pub(crate) fn skill_folder(&self, name: &str) -> Option<PathBuf> {
        // A single path component, so that it cannot lead out of the folder (invariant 18).
        let mut parts = Path::new(name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
        let folder = self.skills_folder().join(name);
        (plain && !name.contains('\0') && folder.join(SKILL_FILE).is_file()).then_some(folder)
    }

    /// The names of all skills in the data folder.
    pub(crate) fn skill_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.skills_folder()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| self.skill_folder(name).is_some()).collect();
        names.sort_unstable();
        names
    }

    /// All skills in the data folder, with their descriptions.
    pub(crate) fn skills_with_descriptions(&self) -> Vec<(String, Option<String>)> {
        let describe = |name: String| {
            let mut start = String::new();
            let file = File::open(self.skills_folder().join(&name).join(SKILL_FILE));
            let read = file.and_then(|file| file.take(MAX_SUMMARY_BYTES).read_to_string(&mut start));
            let description = read.ok().and_then(|_| document::summary(&start).0);
            (name, description)
        };
        self.skill_names().into_iter().map(describe).collect()
    }

    /// The temporary folder of a run.
    pub(crate) fn run_folder(&self, name: &str) -> PathBuf {
        self.runs_folder().join(name)
    }

    pub(crate) fn runs_folder(&self) -> PathBuf {
        self.data.join("runs")
    }

    fn skills_folder(&self) -> PathBuf {
        self.data.join("skills")
    }
}

#[cfg(test)]
mod tests {
    use super::Folders;
    use domain::ids::{AgentId, RoomId};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn create_makes_private_folders_and_is_idempotent() {
        let data = tempfile::tempdir().unwrap();
        let folders = Folders { data: data.path().join("data"), shared_workspace: None };
        let (room, agent) = (RoomId::generate(), AgentId::generate());
        for _ in 0..2 {
            Folders::create_private(&folders.workspace(room)).unwrap();
            Folders::create_private(&folders.agent_home(agent)).unwrap();
        }
        for folder in [folders.workspace(room), folders.agent_home(agent), data.path().join("data/rooms")] {
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        }
        fs::write(data.path().join("file"), "").unwrap();
        let blocked = Folders { data: data.path().join("file"), shared_workspace: None };
        assert!(Folders::create_private(&blocked.workspace(room)).is_err());
    }

    #[test]
    fn absolute_resolves_relative_paths() {
        let folders = Folders { data: "data".into(), shared_workspace: Some("here".into()) }.absolute();
        let (room, agent) = (RoomId::generate(), AgentId::generate());
        assert!(folders.agent_home(agent).is_absolute() && folders.workspace(room).is_absolute());
        assert!(folders.workspace(room).ends_with("here"));
    }

    #[test]
    fn skill_folder_needs_a_skill_file_and_rejects_paths_outside() {
        let data = tempfile::tempdir().unwrap();
        for folder in ["skills/review", "skills/empty", "outside"] {
            fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        for file in ["skills/review/SKILL.md", "outside/SKILL.md", "skills/SKILL.md"] {
            fs::write(data.path().join(file), "# It").unwrap();
        }
        let folders = Folders { data: data.path().to_owned(), shared_workspace: None };
        assert_eq!(folders.skill_folder("review"), Some(data.path().join("skills/review")));
        for name in ["empty", "nothing", "", ".", "..", "../outside", "review/", "review/.", "./review", "re\0view"] {
            assert_eq!(folders.skill_folder(name), None, "{name:?}");
        }
        let absolute = data.path().join("outside");
        assert_eq!(folders.skill_folder(absolute.to_str().unwrap()), None);
        assert_eq!(folders.skill_names(), ["review"]);
    }
}
