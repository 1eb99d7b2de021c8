//! The skills in the prompt of an agent on a model API: their names and descriptions, and the one that a message calls.

use crate::skill_files;
use domain::skill::document;
use workbench::skills::SkillFolder;

const MAX_DESCRIPTION_BYTES: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillInstructions {
    pub name: String,
    pub description: String,
    pub body: String,
}

/// Reads an agent's skills. A skill that cannot be read is skipped and reported. Blocks.
pub fn read_skills(folders: &[SkillFolder]) -> (Vec<SkillInstructions>, Vec<String>) {
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    for SkillFolder { name, path, .. } in folders {
        match skill_files::read_document(path) {
            Ok(text) => {
                let (description, body) = document::summary(&text);
                let mut description = description.unwrap_or_default();
                description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
                skills.push(SkillInstructions { name: name.clone(), description, body: body.to_owned() });
            }
            Err(error) => problems.push(format!("the skill {name} cannot be read: {error}")),
        }
    }
    (skills, problems)
}

#[cfg(test)]
mod tests {
    use super::read_skills;
    use std::fs;
    use workbench::skills::SkillFolder;

    #[test]
    fn readable_skills_are_described_and_others_reported() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, document: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("SKILL.md"), document).unwrap();
            SkillFolder::read(name, path).unwrap()
        };
        let folders = [
            folder("rain", "---\nname: rain\ndescription: Use when: it rains\n---\nTake an umbrella.\n"),
            folder("long", &format!("---\ndescription: {}\n---\n", "ä".repeat(2000))),
            folder("plain", "No frontmatter."),
            SkillFolder { path: dir.path().join("gone"), ..folder("there", "") },
        ];
        let (skills, problems) = read_skills(&folders);
        assert_eq!(
            (skills[0].description.as_str(), skills[0].body.trim()),
            ("Use when: it rains", "Take an umbrella.")
        );
        assert_eq!(skills[1].description.len(), 1024);
        assert_eq!((skills[2].description.as_str(), skills[2].body.as_str()), ("", "No frontmatter."));
        assert_eq!((skills.len(), problems.len()), (3, 1), "{problems:?}");
    }
}
