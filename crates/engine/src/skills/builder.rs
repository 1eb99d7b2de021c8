//! Combines the skills of a run one by one: documents, tool policy, prompt, training note.

use super::{AgentWithSkills, SkillCall, SkillSetupError};
use crate::mcp_servers::RunNotice;
use domain::{
    agent::{Agent, ToolPolicy},
    skill::{ParameterError, ParameterValues, SKILL_FILE, Skill, document, fill_placeholders},
};
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};
use store::SkillUse;
use workbench::skills::{FilledSkill, SkillFolder};

/// How much of a `SKILL.md` in the data folder goes into a prompt.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024;
/// A longer stored body is not added to the training note.
const MAX_SHOWN_BODY: usize = 64 * 1024;

/// Collects the results skill by skill.
pub(super) struct SkillSetBuilder {
    pub result: AgentWithSkills,
    pub filled_skills: Vec<FilledSkill>,
    pub uses: Vec<SkillUse>,
    /// The filled-in document of the skill that was added last.
    pub document: Option<String>,
    pub called: Option<CalledSkill>,
}

impl SkillSetBuilder {
    pub fn for_agent(agent: &Agent) -> Self {
        let agent = agent.clone();
        let result =
            AgentWithSkills { agent, folders: Vec::new(), prompt: None, servers: Vec::new(), notices: Vec::new() };
        Self { result, filled_skills: Vec::new(), uses: Vec::new(), document: None, called: None }
    }

    /// Adds a skill and returns whether the run gets it: a skill with a missing value is left out unless it is called.
    pub fn add(&mut self, skill: &Skill, call: Option<&SkillCall>, is_trained: bool) -> Result<bool, SkillSetupError> {
        let (spec, nothing) = (&skill.spec, ParameterValues::new());
        let own = self.result.agent.spec.skill_parameters.get(spec.name.as_str()).unwrap_or(&nothing);
        let given = call.map_or(&nothing, |call| &call.arguments.values);
        let values = match spec.resolve_parameters(&[given, own]) {
            Ok(values) => values,
            Err(ParameterError::Missing { .. }) if call.is_none() && is_trained => Default::default(),
            Err(ParameterError::Missing { .. }) if call.is_none() => return Ok(false),
            Err(error) => return Err(SkillSetupError::Parameters(spec.name.clone(), error)),
        };
        let body = fill_placeholders(&spec.body, &values);
        self.document = Some(spec.document(&body, document::Audience::Agents));
        if let Some(call) = call {
            let (name, text) = (spec.name.to_string(), call.arguments.text.clone());
            self.called = Some(CalledSkill { name, body, text, has_files: !skill.files.is_empty() });
        }
        let settings = &mut self.result.agent.spec;
        apply_tool_policy(&mut settings.tools, &spec.tools, call.is_some() && !skill.needs_review);
        if is_trained {
            let prompt = settings.system_prompt.get_or_insert_default();
            if !prompt.is_empty() {
                prompt.push_str("\n\n");
            }
            prompt.push_str(&training_note(skill));
        }
        match skill.needs_review {
            true => self.result.notices.push(review_notice(skill)),
            false => self.result.servers.push((spec.name.to_string(), spec.mcp_servers.clone())),
        }
        self.uses.push(SkillUse { skill: skill.id, version: skill.version, invoked: call.is_some() });
        Ok(true)
    }
}

/// Reads a skill in the data folder, all its files: its digest says which version a run has.
pub(super) async fn read_skill_folder(name: &str, path: PathBuf) -> Result<SkillFolder, SkillSetupError> {
    let unreadable = |error: &dyn std::fmt::Display| SkillSetupError::Unreadable(name.to_owned(), error.to_string());
    let named = name.to_owned();
    let read = tokio::task::spawn_blocking(move || SkillFolder::read(named, path)).await;
    read.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))
}

/// Reads the instructions of a skill in the data folder.
pub(super) async fn read_skill_body(folder: &SkillFolder) -> Result<String, SkillSetupError> {
    let file = folder.path.join(SKILL_FILE);
    let read = tokio::task::spawn_blocking(move || {
        let mut document = String::new();
        File::open(file)?.take(MAX_DOCUMENT_BYTES).read_to_string(&mut document)?;
        Ok(document)
    });
    let document: std::io::Result<String> = read.await.map_err(|error| SkillSetupError::Disk(error.to_string()))?;
    let document = document.map_err(|error| SkillSetupError::Disk(error.to_string()))?;
    Ok(document::summary(&document).1.to_owned())
}

/// A skill that the message calls by name. Its instructions go into the prompt, so that it works the same with every
/// provider.
pub(super) struct CalledSkill {
    pub name: String,
    pub body: String,
    /// The text of the message without the parameters.
    pub text: String,
    pub has_files: bool,
}

impl CalledSkill {
    pub fn prompt(&self, folder: Option<&Path>) -> String {
        let Self { name, body, text, has_files } = self;
        let mut prompt = format!("Use the skill {name:?} now. Its instructions:\n\n<skill name={name:?}>\n{body}");
        if !body.ends_with('\n') {
            prompt.push('\n');
        }
        prompt.push_str("</skill>\n");
        if let Some(folder) = folder.filter(|_| *has_files) {
            prompt.push_str(&format!("\nPaths in it are relative to {}\n", folder.display()));
        }
        if !text.is_empty() {
            prompt.push_str(&format!("\nWhat is asked of it:\n\n{text}\n"));
        }
        prompt
    }
}

/// A skill's `deny` and `ask` always apply; its `allow` applies only if a person has called it, and never overrides the
/// agent's own `deny` or `ask`.
fn apply_tool_policy(tools: &mut ToolPolicy, skill: &ToolPolicy, is_called: bool) {
    tools.deny.extend_from_slice(&skill.deny);
    tools.ask.extend_from_slice(&skill.ask);
    if is_called {
        tools.allow.extend_from_slice(&skill.allow);
    }
}

fn review_notice(skill: &Skill) -> RunNotice {
    let name = &skill.spec.name;
    let message = format!(
        "the skill {name} was imported and is not accepted yet, so the tools it allows, its MCP servers and its scripts are \
         off. Review it on the page of the skill, or with GET /api/skills/{name} and POST /api/skills/{name}/accept"
    );
    RunNotice { status: "skill_not_accepted", message }
}

fn training_note(skill: &Skill) -> String {
    let spec = &skill.spec;
    let mut note = format!(
        "This room is for training the skill {:?} (version {}), which is among your skills. When you are given a task, follow \
         the skill to the letter, so that the person who rates your answer rates the skill. When you are asked to propose an \
         improvement, answer with a short reason and then the complete new body of the skill in one fenced block that begins \
         with a line ````skill and ends with a line ````. The body is Markdown without frontmatter; placeholders in double \
         braces stay as they are.",
        spec.name.as_str(),
        skill.version
    );
    if spec.body.len() <= MAX_SHOWN_BODY {
        note.push_str(&format!(
            "\n\nIts body as it is stored:\n\n<skill-body>\n{}\n</skill-body>",
            spec.body.trim_end()
        ));
    }
    note
}
