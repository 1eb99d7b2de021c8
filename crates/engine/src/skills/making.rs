//! What the skills of a run come to, put together one by one: documents, the tool policy, the prompt, the training note.

use super::{Call, Obstacle, Skilled};
use domain::{
    agent::{Agent, ToolPolicy},
    skill::{Given, SKILL_FILE, Skill, Trouble, document, fill},
};
use providers::SkillFolder;
use std::{fs::File, io::Read as _, path::Path};
use store::SkillUse;
use workbench::skills::Filled;

/// How much of a `SKILL.md` in the data folder goes into a prompt.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024;
/// Above this a trainer is not shown the stored body beside the filled one.
const MAX_SHOWN_BODY: usize = 64 * 1024;

/// What is put together skill by skill.
pub(super) struct Making {
    pub skilled: Skilled,
    pub filled: Vec<Filled>,
    pub uses: Vec<SkillUse>,
    /// Of the skill that was added last, filled in.
    pub document: Option<String>,
    pub called: Option<Called>,
}

impl Making {
    pub fn of(agent: &Agent) -> Self {
        let agent = agent.clone();
        let skilled = Skilled { agent, folders: Vec::new(), prompt: None, servers: Vec::new() };
        Self { skilled, filled: Vec::new(), uses: Vec::new(), document: None, called: None }
    }

    /// Whether the run gets it: one that a value is missing for is only there where it is called.
    pub fn add(&mut self, skill: &Skill, call: Option<&Call>, is_trained: bool) -> Result<bool, Obstacle> {
        let (spec, nothing) = (&skill.spec, Given::new());
        let own = self.skilled.agent.spec.skill_parameters.get(spec.name.as_str()).unwrap_or(&nothing);
        let given = call.map_or(&nothing, |call| &call.arguments.given);
        let values = match spec.values(&[given, own]) {
            Ok(values) => values,
            Err(Trouble::Missing { .. }) if call.is_none() && is_trained => Default::default(),
            Err(Trouble::Missing { .. }) if call.is_none() => return Ok(false),
            Err(trouble) => return Err(Obstacle::Trouble(spec.name.clone(), trouble)),
        };
        let body = fill(&spec.body, &values);
        self.document = Some(spec.document(&body, document::For::Agents));
        if let Some(call) = call {
            let (name, text) = (spec.name.to_string(), call.arguments.text.clone());
            self.called = Some(Called { name, body, text, has_files: !skill.files.is_empty() });
        }
        let settings = &mut self.skilled.agent.spec;
        restrict(&mut settings.tools, &spec.tools, call.is_some());
        if is_trained {
            let prompt = settings.system_prompt.get_or_insert_default();
            if !prompt.is_empty() {
                prompt.push_str("\n\n");
            }
            prompt.push_str(&training_note(skill));
        }
        self.skilled.servers.push((spec.name.to_string(), spec.mcp_servers.clone()));
        self.uses.push(SkillUse { skill: skill.id, version: skill.version, invoked: call.is_some() });
        Ok(true)
    }
}

/// The instructions of a skill in the data folder.
pub(super) async fn body_of(folder: &SkillFolder) -> Result<String, Obstacle> {
    let file = folder.path.join(SKILL_FILE);
    let read = tokio::task::spawn_blocking(move || {
        let mut document = String::new();
        File::open(file)?.take(MAX_DOCUMENT_BYTES).read_to_string(&mut document)?;
        Ok(document)
    });
    let document: std::io::Result<String> = read.await.map_err(|error| Obstacle::Disk(error.to_string()))?;
    let document = document.map_err(|error| Obstacle::Disk(error.to_string()))?;
    Ok(document::summary(&document).1.to_owned())
}

/// A skill that the message calls by its name. Its instructions go into the prompt, so that it is the same with every
/// provider, whatever that makes of skills.
pub(super) struct Called {
    pub name: String,
    pub body: String,
    /// What the person says beside the parameters.
    pub text: String,
    pub has_files: bool,
}

impl Called {
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

/// A skill forbids and asks wherever it is at hand; it allows only where a person has called it, and never what the agent's
/// own settings forbid or ask about.
fn restrict(tools: &mut ToolPolicy, skill: &ToolPolicy, is_called: bool) {
    tools.deny.extend_from_slice(&skill.deny);
    tools.ask.extend_from_slice(&skill.ask);
    if is_called {
        tools.allow.extend_from_slice(&skill.allow);
    }
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
