//! An agent as files: a folder with `agent.toml` (its settings), `prompt.md` (its system prompt) and `memory.md` (its notes).
//! Only texts here; nothing is read from a disk.

use crate::agent::AgentSpec;
use std::collections::BTreeMap;

pub const SETTINGS_FILE: &str = "agent.toml";
pub const PROMPT_FILE: &str = "prompt.md";
pub const MEMORY_FILE: &str = "memory.md";
/// All of them, in the order in which they are written.
pub const AGENT_FILES: [&str; 3] = [SETTINGS_FILE, PROMPT_FILE, MEMORY_FILE];

/// Separates two notes of `memory.md`, on a line of its own.
const BETWEEN_NOTES: &str = "---";

#[derive(Clone, PartialEq, Debug)]
pub struct AgentFolder {
    pub spec: AgentSpec,
    /// The oldest first.
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AgentFilesError {
    #[error("agent.toml is missing")]
    NoSettings,
    #[error("agent.toml: {0}")]
    Settings(String),
    #[error("agent.toml: the system prompt belongs into prompt.md; remove system_prompt")]
    PromptInSettings,
    #[error("the settings cannot be written as TOML: {0}")]
    NotToml(String),
}

impl AgentFolder {
    /// Reads the files of one folder, by name. Other files are ignored.
    pub fn read(files: &BTreeMap<String, String>) -> Result<Self, AgentFilesError> {
        let settings = files.get(SETTINGS_FILE).ok_or(AgentFilesError::NoSettings)?;
        let mut spec: AgentSpec =
            toml::from_str(settings).map_err(|error| AgentFilesError::Settings(error.message().to_owned()))?;
        if spec.system_prompt.is_some() {
            return Err(AgentFilesError::PromptInSettings);
        }
        let prompt = files.get(PROMPT_FILE).map(|text| text.trim()).filter(|text| !text.is_empty());
        spec.system_prompt = prompt.map(ToOwned::to_owned);
        let notes = files.get(MEMORY_FILE).map(|text| read_notes(text)).unwrap_or_default();
        Ok(Self { spec, notes })
    }

    /// Writes the files; an empty one is left out.
    pub fn write(&self) -> Result<BTreeMap<&'static str, String>, AgentFilesError> {
        let spec = AgentSpec { system_prompt: None, ..self.spec.clone() };
        let settings = toml::to_string(&spec).map_err(|error| AgentFilesError::NotToml(error.to_string()))?;
        let mut files = BTreeMap::from([(SETTINGS_FILE, settings)]);
        if let Some(prompt) = &self.spec.system_prompt {
            files.insert(PROMPT_FILE, format!("{}\n", prompt.trim()));
        }
        if !self.notes.is_empty() {
            let notes: Vec<String> = self.notes.iter().map(|note| escaped(note)).collect();
            files.insert(MEMORY_FILE, format!("{}\n", notes.join(&format!("\n\n{BETWEEN_NOTES}\n\n"))));
        }
        Ok(files)
    }
}

fn read_notes(text: &str) -> Vec<String> {
    let mut notes = vec![Vec::new()];
    for line in text.lines() {
        match (line.trim_end() == BETWEEN_NOTES, notes.last_mut()) {
            (false, Some(note)) => {
                note.push(line.strip_prefix('\\').filter(|rest| *rest == BETWEEN_NOTES).unwrap_or(line))
            }
            _ => notes.push(Vec::new()),
        }
    }
    let notes = notes.into_iter().map(|lines| lines.join("\n").trim().to_owned());
    notes.filter(|note| !note.is_empty()).collect()
}

/// A note whose lines do not end it.
fn escaped(note: &str) -> String {
    let lines = note.trim().lines().map(|line| match line.trim_end() == BETWEEN_NOTES {
        true => format!("\\{BETWEEN_NOTES}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The name of an agent's folder: lowercase letters and digits of its name. `taken` are the folders of other agents.
pub fn folder_name(agent: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = String::new();
    for c in agent.to_lowercase().chars() {
        match c.is_alphanumeric() {
            true => name.push(c),
            false if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            false => {}
        }
    }
    let name = match name.trim_end_matches('-') {
        "" => "agent",
        name => name,
    };
    let mut numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut free = name.to_owned();
    while taken(&free) {
        free = numbered.next().unwrap_or_default();
    }
    free
}

#[cfg(test)]
mod tests {
    use super::{AgentFilesError, AgentFolder, folder_name};
    use crate::{
        agent::{AgentSpec, ModelOptions, ToolPolicy},
        name::Name,
    };
    use std::collections::BTreeMap;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = AgentFolder {
            spec: AgentSpec {
                system_prompt: Some("You are Ann.\n\nBe brief.".into()),
                model: Some("m".into()),
                tools: ToolPolicy { allow: vec!["Read".into()], ..ToolPolicy::default() },
                model_options: Some(ModelOptions { temperature: Some(0.5), ..ModelOptions::default() }),
                ..AgentSpec::new(Name::parse("Ann").unwrap(), "scripted")
            },
            notes: vec!["one".into(), "two\n---\nlines".into()],
        };
        let written = folder.write().unwrap();
        let read: BTreeMap<String, String> =
            written.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
        assert_eq!(AgentFolder::read(&read).unwrap(), folder);
        assert!(!written["agent.toml"].contains("system_prompt"));
        let bare = AgentFolder { spec: AgentSpec::new(Name::parse("B").unwrap(), "p"), notes: Vec::new() };
        assert_eq!(bare.write().unwrap().len(), 1, "no empty files");
    }

    #[test]
    fn files_by_hand_are_read_and_errors_say_what_is_wrong() {
        let by_hand = files(&[
            ("agent.toml", "name = \"Ann\"\nprovider = \"scripted\"\n[tools]\ndeny = [\"Bash\"]\n"),
            ("prompt.md", "\nBe kind.\n"),
            ("memory.md", "a\n---\n\n---\nb\n"),
            ("notes.txt", "ignored"),
        ]);
        let read = AgentFolder::read(&by_hand).unwrap();
        assert_eq!(
            (read.spec.system_prompt.as_deref(), read.notes),
            (Some("Be kind."), vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(AgentFolder::read(&files(&[])), Err(AgentFilesError::NoSettings));
        let prompt = files(&[("agent.toml", "name = \"A\"\nprovider = \"p\"\nsystem_prompt = \"x\"\n")]);
        assert_eq!(AgentFolder::read(&prompt), Err(AgentFilesError::PromptInSettings));
        for wrong in ["name = ", "name = \"A\"", "name = \"A\"\nprovider = \"p\"\ncolour = 1\n"] {
            let error = AgentFolder::read(&files(&[("agent.toml", wrong)])).unwrap_err();
            assert!(matches!(error, AgentFilesError::Settings(_)), "{error}");
        }
    }

    #[test]
    fn a_folder_has_a_plain_name_of_its_own() {
        assert_eq!(folder_name("Ann", |_| false), "ann");
        assert_eq!(folder_name("../Dr. Who?", |_| false), "dr-who");
        assert_eq!(folder_name("…", |_| false), "agent");
        assert_eq!(folder_name("Ann", |name| ["ann", "ann-2"].contains(&name)), "ann-3");
    }
}
