//! `skill`: loads a skill on demand. The prompt contains only the names and descriptions of the agent's skills.

use crate::{
    SkillFolder,
    direct::{conversation::floor_char_boundary, tool_loop::ToolCallOutcome, wire::OfferedTool},
};
use serde_json::{Map, Value, json};
use std::{
    fs, io,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

pub const NAME: &str = "skill";
const FILE: &str = "SKILL.md";
const MAX_FILE_BYTES: u64 = 256 * 1024;
const MAX_DESCRIPTION_BYTES: usize = 1024;
const MAX_LISTED: usize = 100;

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
    for SkillFolder { name, path } in folders {
        match read(&path.join(FILE)) {
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
    if let Some(file) = file {
        return read(&resolve_beneath(&skill.folder, file)?);
    }
    let files = further_files(&skill.folder);
    let files = match files.is_empty() {
        true => String::new(),
        false => format!("\n\nFurther files of this skill, to be loaded one by one: {}", files.join(", ")),
    };
    Ok(format!("<skill name=\"{}\">\n{}\n</skill>{files}", skill.name, skill.body.trim()))
}

/// Resolves a path and its symlinks, and rejects a file outside of the skill's folder (invariant 18).
fn resolve_beneath(folder: &Path, file: &str) -> io::Result<PathBuf> {
    let outside = || io::Error::new(io::ErrorKind::PermissionDenied, "the path is outside of the skill's folder");
    let path = Path::new(file);
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(outside());
    }
    let (folder, path) = (folder.canonicalize()?, folder.join(path).canonicalize()?);
    if path.starts_with(&folder) { Ok(path) } else { Err(outside()) }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the file is longer than {MAX_FILE_BYTES} bytes"),
        ));
    }
    Ok(text)
}

/// Lists the skill's other files by name, at most two folders deep and [`MAX_LISTED`].
fn further_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((at, depth)) = folders.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            match entry.file_type() {
                _ if is_hidden || files.len() >= MAX_LISTED => {}
                Ok(kind) if kind.is_dir() && depth < 2 => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() && path != folder.join(FILE) => {
                    files.extend(path.strip_prefix(folder).ok().map(|path| path.display().to_string()));
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
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
    use crate::SkillFolder;
    use serde_json::json;
    use std::fs;

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
            SkillFolder { name: "s".into(), path: dir.join("s") },
            SkillFolder { name: "gone".into(), path: dir.join("gone") },
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
}
