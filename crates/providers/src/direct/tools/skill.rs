//! `skill`: loads a skill on demand. The prompt contains only the names and descriptions of the agent's skills.

use crate::direct::{conversation::floor_char_boundary, tool_loop::ToolCallOutcome, wire::OfferedTool};
use serde_json::{Map, Value, json};
use std::{
    io,
    path::{Path, PathBuf},
};
use workbench::{
    files::{EntryKind, Root, RootError},
    skills::SkillFolder,
};

pub const NAME: &str = "skill";
const FILE: &str = "SKILL.md";
const MAX_FILE_BYTES: u64 = 256 * 1024;
const MAX_DESCRIPTION_BYTES: usize = 1024;
const MAX_LISTED: usize = 100;
/// How many entries of one folder are looked at.
const MAX_ENTRIES: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillInstructions {
    pub name: String,
    pub description: String,
    pub body: String,
    folder: PathBuf,
}

/// Reads an agent's skills. A skill that cannot be read is skipped and reported. Blocks.
pub fn read_skills(folders: &[SkillFolder]) -> (Vec<SkillInstructions>, Vec<String>) {
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    for SkillFolder { name, path, .. } in folders {
        match open_root(path).and_then(|root| read(&root, FILE)) {
            Ok(text) => {
                let (description, body) = parts(&text);
                let (name, body, folder) = (name.clone(), body.to_owned(), path.clone());
                skills.push(SkillInstructions { name, description, body, folder });
            }
            Err(error) => problems.push(format!("the skill {name} cannot be read: {error}")),
        }
    }
    (skills, problems)
}

pub fn offered_tool(skills: &[SkillInstructions]) -> OfferedTool {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    OfferedTool {
        name: NAME.to_owned(),
        description: "Loads a skill: instructions for a kind of task. Load it before you begin such a task.".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": names},
                "file": {"type": "string", "description": "One of the skill's further files, instead of its instructions."}
            },
            "required": ["name"],
            "additionalProperties": false
        }),
    }
}

pub async fn run(skills: &[SkillInstructions], input: &Map<String, Value>) -> ToolCallOutcome {
    let text = |key: &str| input.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(skill) = text("name").and_then(|name| skills.iter().find(|skill| skill.name == name)) else {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        return ToolCallOutcome::text(format!("name: one of {}", names.join(", ")), true);
    };
    let (skill, file) = (skill.clone(), text("file").map(str::to_owned));
    let loaded = tokio::task::spawn_blocking(move || load(&skill, file.as_deref())).await;
    match loaded {
        Ok(Ok(text)) => ToolCallOutcome::text(text, false),
        Ok(Err(error)) => ToolCallOutcome::text(format!("the skill cannot be read: {error}"), true),
        Err(error) => ToolCallOutcome::text(format!("the skill cannot be read: {error}"), true),
    }
}

/// Returns the text of a skill, or of one of its files, for the model. Blocks.
pub fn load(skill: &SkillInstructions, file: Option<&str>) -> io::Result<String> {
    let root = open_root(&skill.folder)?;
    if let Some(file) = file {
        return read(&root, file);
    }
    let files = further_files(&root)?;
    let files = match files.is_empty() {
        true => String::new(),
        false => format!("\n\nFurther files of this skill, to be loaded one by one: {}", files.join(", ")),
    };
    Ok(format!("<skill name=\"{}\">\n{}\n</skill>{files}", skill.name, skill.body.trim()))
}

/// An agent can write in the folders of skills in its workspace (invariant 18).
fn open_root(folder: &Path) -> io::Result<Root> {
    Ok(Root::open_following_links(folder)?)
}

fn read(root: &Root, path: &str) -> io::Result<String> {
    let bytes = root.read(path, MAX_FILE_BYTES).map_err(|error| match error {
        RootError::InvalidPath | RootError::Outside => {
            io::Error::new(io::ErrorKind::PermissionDenied, "the path is outside of the skill's folder")
        }
        error => error.into(),
    })?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Lists the skill's other files by name, at most two folders deep and [`MAX_LISTED`].
fn further_files(root: &Root) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in root.list(&folder, MAX_ENTRIES)?.entries {
            let path = folder.join(&entry.name);
            match entry.kind {
                _ if entry.name.as_encoded_bytes().starts_with(b".") || files.len() >= MAX_LISTED => {}
                EntryKind::Folder if depth < 2 => folders.push((path, depth + 1)),
                EntryKind::File if path != Path::new(FILE) => files.push(path.display().to_string()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the description in the front matter, and the text below it.
fn parts(text: &str) -> (String, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let front = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let ends = |front: &str| {
        let mut at = 0;
        for line in front.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return Some((at, at + line.len()));
            }
            at += line.len();
        }
        None
    };
    let Some((front, (end, begin))) = front.and_then(|front| Some((front, ends(front)?))) else {
        return (String::new(), text);
    };
    let mut description = description(&front[..end]);
    description.truncate(floor_char_boundary(&description, MAX_DESCRIPTION_BYTES));
    (description, &front[begin..])
}

/// Parses a single line, quoted or not, or a block: the part of YAML that skills use here.
fn description(front: &str) -> String {
    let mut lines = front.lines().skip_while(|line| !line.starts_with("description:"));
    let Some(first) = lines.next().and_then(|line| line.strip_prefix("description:")) else { return String::new() };
    let first = first.trim();
    let below = || lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t'])).map(str::trim);
    if first.is_empty() || matches!(first.chars().next(), Some('>' | '|')) {
        return below().collect::<Vec<_>>().join(" ").trim().to_owned();
    }
    for quote in ['"', '\''] {
        if let Some(inner) = first.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.replace("\\\"", "\"").replace("''", "'");
        }
    }
    let more: Vec<&str> = below().filter(|line| !line.is_empty()).collect();
    [&[first], more.as_slice()].concat().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{SkillInstructions, load, parts, read_skills, run};
    use serde_json::json;
    use std::{
        fs,
        sync::atomic::{AtomicBool, Ordering},
        time::{Duration, Instant},
    };
    use workbench::skills::SkillFolder;

    #[test]
    fn parses_front_matter() {
        for (front, expected) in [
            ("name: x\ndescription: Use when: it rains\n", "Use when: it rains"),
            ("description: \"Quoted \\\"so\\\"\"\n", "Quoted \"so\""),
            ("description: 'it''s'\n", "it's"),
            ("description: >-\n  two\n  lines\nname: x\n", "two lines"),
            ("description: first\n  second\n", "first second"),
            ("name: x\n", ""),
        ] {
            assert_eq!(parts(&format!("---\n{front}---\nBody\n")), (expected.to_owned(), "Body\n"), "{front}");
        }
        assert_eq!(parts("no front matter"), (String::new(), "no front matter"));
        assert_eq!(parts("---\nnever closed"), (String::new(), "---\nnever closed"));
        assert_eq!(parts("\u{feff}---\r\ndescription: d\r\n---\r\nB"), ("d".to_owned(), "B"));
    }

    fn skill(dir: &std::path::Path) -> SkillInstructions {
        fs::create_dir_all(dir.join("s/more")).unwrap();
        fs::write(dir.join("s/SKILL.md"), "---\nname: s\ndescription: Does s.\n---\nFirst this.\n").unwrap();
        fs::write(dir.join("s/more/a.txt"), "further").unwrap();
        fs::write(dir.join("secret"), "secret").unwrap();
        let folders = [
            SkillFolder::read("s", dir.join("s")).unwrap(),
            SkillFolder { path: dir.join("gone"), ..SkillFolder::read("gone", dir.join("s")).unwrap() },
        ];
        let (mut skills, problems) = read_skills(&folders);
        assert_eq!(problems.len(), 1, "{problems:?}");
        skills.remove(0)
    }

    #[tokio::test]
    async fn skill_is_loaded_with_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let skill = skill(dir.path());
        assert_eq!(skill.description, "Does s.");
        let text = load(&skill, None).unwrap();
        assert!(text.contains("First this.") && text.ends_with("more/a.txt"), "{text}");
        assert_eq!(load(&skill, Some("more/a.txt")).unwrap(), "further");
        let input = json!({"name": "t"});
        let outcome = run(&[skill], input.as_object().unwrap()).await;
        assert!(outcome.is_error && outcome.for_room == "name: one of s");
    }

    #[test]
    fn invariant_18_beneath_paths_outside_of_a_skill_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let skill = skill(dir.path());
        std::os::unix::fs::symlink(dir.path().join("secret"), dir.path().join("s/link")).unwrap();
        for path in ["../secret", "more/../../secret", "/etc/hostname", "link"] {
            let error = load(&skill, Some(path)).unwrap_err();
            assert!(error.to_string().contains("is outside of"), "{path}: {error}");
        }
        assert!(!load(&skill, None).unwrap().contains("link"));
    }

    /// A path that was checked and then opened again would sometimes show the secret here.
    #[test]
    fn invariant_18_beneath_a_folder_that_turns_into_a_link_shows_nothing_outside() {
        let dir = tempfile::tempdir().unwrap();
        let skill = skill(dir.path());
        fs::write(dir.path().join("a.txt"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("s/link")).unwrap();
        let (ended, deadline) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
        let (mut read, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let root = workbench::files::Root::open(&dir.path().join("s")).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    root.exchange("more", "link").unwrap();
                }
            });
            while (read < 10_000 || refused < 10_000) && Instant::now() < deadline {
                match load(&skill, Some("more/a.txt")) {
                    Ok(text) if text == "further" => read += 1,
                    Ok(_) => break,
                    Err(_) => refused += 1,
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert!(
            read >= 10_000 && refused >= 10_000,
            "{read} read, {refused} refused, then the file outside or the deadline"
        );
    }
}
