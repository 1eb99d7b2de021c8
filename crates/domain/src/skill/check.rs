//! What is wrong with a skill. An error keeps it from being stored; a warning is worth a look.

use super::{Parameter, ParameterKind, SkillSpec, parameter::is_name, placeholders};
use serde::Serialize;
use std::collections::BTreeSet;

pub const MAX_BODY_BYTES: usize = 256 * 1024;
const MAX_DESCRIPTION: usize = 1024;
const MAX_LINE: usize = 500;
const MAX_WORD: usize = 64;
const MAX_METADATA: usize = 50;
const MAX_METADATA_VALUE: usize = 1024;
const MAX_PARAMETERS: usize = 50;
const MAX_CHOICES: usize = 100;
const MAX_CHOICE: usize = 200;
const MAX_TOOLS: usize = 200;
const MAX_SERVERS: usize = 20;
const MAX_SERVER_BYTES: usize = 16 * 1024;
/// Agent Skills: a body stays below 5,000 tokens, which is about this much English.
const ADVISED_BODY_BYTES: usize = 20_000;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Finding {
    pub level: Level,
    /// Where (RFC 6901).
    pub pointer: String,
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Error,
    Warning,
}

impl Finding {
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Error, pointer: pointer.into(), message: message.into() }
    }

    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, pointer: pointer.into(), message: message.into() }
    }
}

impl SkillSpec {
    /// Errors first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.check_texts(&mut findings);
        self.check_parameters(&mut findings);
        self.check_equipment(&mut findings);
        findings.sort_by_key(|finding| finding.level == Level::Warning);
        findings
    }

    fn check_texts(&self, findings: &mut Vec<Finding>) {
        let length = self.description.chars().count();
        if self.description.trim().is_empty() {
            let message = "a skill needs a description: what it does and when to use it; agents choose by it";
            findings.push(Finding::error("/description", message));
        } else if length > MAX_DESCRIPTION {
            let message = format!("a description has at most {MAX_DESCRIPTION} characters, this one has {length}");
            findings.push(Finding::error("/description", message));
        }
        if self.description.contains(is_odd) {
            findings.push(Finding::error("/description", "the description holds a control character"));
        }
        if self.body.len() > MAX_BODY_BYTES {
            let message = format!("a body has at most {MAX_BODY_BYTES} bytes, this one has {}", self.body.len());
            findings.push(Finding::error("/body", message));
        } else if self.body.len() > ADVISED_BODY_BYTES {
            let message = "the body is long: below 5,000 tokens agents follow it better; move details into files";
            findings.push(Finding::warning("/body", message));
        }
        if self.body.contains('\0') {
            findings.push(Finding::error("/body", "the body holds a NUL character"));
        }
        if self.body.trim().is_empty() {
            findings.push(Finding::warning("/body", "the body is empty: there is nothing to follow"));
        }
        for (pointer, text, most) in [
            ("/category", &self.category, MAX_WORD),
            ("/label", &self.label, MAX_WORD),
            ("/license", &self.license, MAX_LINE),
            ("/compatibility", &self.compatibility, MAX_LINE),
        ] {
            if text.as_ref().is_some_and(|text| !is_line(text, most)) {
                findings.push(Finding::error(pointer, format!("it is one line of 1 to {most} characters")));
            }
        }
        let fits = |(key, value): (&String, &String)| {
            is_line(key, MAX_WORD) && value.chars().count() <= MAX_METADATA_VALUE && !value.contains(is_odd)
        };
        if self.metadata.len() > MAX_METADATA || !self.metadata.iter().all(fits) {
            let message = format!(
                "metadata has at most {MAX_METADATA} entries with names up to {MAX_WORD} and values up to \
                 {MAX_METADATA_VALUE} characters"
            );
            findings.push(Finding::error("/metadata", message));
        }
    }

    fn check_parameters(&self, findings: &mut Vec<Finding>) {
        if self.parameters.len() > MAX_PARAMETERS {
            findings.push(Finding::error("/parameters", format!("a skill has at most {MAX_PARAMETERS} parameters")));
            return;
        }
        let mut names = BTreeSet::new();
        let used: BTreeSet<&str> = placeholders(&self.body).collect();
        for (n, parameter) in self.parameters.iter().enumerate() {
            let at = |field: &str| format!("/parameters/{n}/{field}");
            if !is_name(&parameter.name) {
                let message =
                    "a parameter's name has 1 to 64 characters of a-z, 0-9, _ and -, and begins with a letter";
                findings.push(Finding::error(at("name"), message));
            } else if !names.insert(parameter.name.as_str()) {
                findings.push(Finding::error(at("name"), format!("there are two parameters {}", parameter.name)));
            } else if !used.contains(parameter.name.as_str()) {
                let message = format!("the body does not use {{{{{}}}}}", parameter.name);
                findings.push(Finding::warning(at("name"), message));
            }
            check_parameter(parameter, at, findings);
        }
        for name in used.into_iter().filter(|name| !names.contains(name)).take(MAX_PARAMETERS) {
            let message = format!("{{{{{name}}}}} is no parameter of this skill; it stays in the text as it is");
            findings.push(Finding::warning("/body", message));
        }
    }

    fn check_equipment(&self, findings: &mut Vec<Finding>) {
        let is_tool = |tool: &String| is_line(tool, 200);
        for (pointer, list) in
            [("/tools/allow", &self.tools.allow), ("/tools/ask", &self.tools.ask), ("/tools/deny", &self.tools.deny)]
        {
            if list.len() > MAX_TOOLS || !list.iter().all(is_tool) {
                let message = format!("at most {MAX_TOOLS} patterns, each one line of 1 to 200 characters");
                findings.push(Finding::error(pointer, message));
            }
        }
        if !self.tools.allow.is_empty() {
            let message = format!("where it is invoked, these run without asking: {}", self.tools.allow.join(", "));
            findings.push(Finding::warning("/tools/allow", message));
        }
        if self.mcp_servers.len() > MAX_SERVERS {
            findings.push(Finding::error("/mcp_servers", format!("a skill has at most {MAX_SERVERS} MCP servers")));
        }
        for (name, server) in self.mcp_servers.iter().take(MAX_SERVERS) {
            let pointer = format!("/mcp_servers/{}", name.replace('~', "~0").replace('/', "~1"));
            if !is_line(name, MAX_WORD) || !server.is_object() || server.to_string().len() > MAX_SERVER_BYTES {
                let message = "an MCP server has a name of 1 to 64 characters and settings as in .mcp.json";
                findings.push(Finding::error(pointer, message));
            }
        }
    }
}

fn check_parameter(parameter: &Parameter, at: impl Fn(&str) -> String, findings: &mut Vec<Finding>) {
    let is_choice = parameter.kind == ParameterKind::Choice;
    if is_choice == parameter.choices.is_empty() {
        let message = if is_choice { "a choice needs its choices" } else { "only the type choice has choices" };
        findings.push(Finding::error(at("choices"), message));
    }
    if parameter.choices.len() > MAX_CHOICES || !parameter.choices.iter().all(|choice| is_line(choice, MAX_CHOICE)) {
        let message = format!("at most {MAX_CHOICES} choices, each one line of 1 to {MAX_CHOICE} characters");
        findings.push(Finding::error(at("choices"), message));
    }
    if parameter.description.as_ref().is_some_and(|text| text.chars().count() > MAX_LINE || text.contains(is_odd)) {
        findings
            .push(Finding::error(at("description"), format!("a description here has at most {MAX_LINE} characters")));
    }
    if let Some(default) = &parameter.default {
        if let Err(why) = parameter.fit(default) {
            findings.push(Finding::error(at("default"), format!("the default does not fit: it {why}")));
        } else if parameter.required {
            findings.push(Finding::warning(at("required"), "with a default it is never missing"));
        }
    }
}

fn is_line(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.contains(char::is_control)
}

/// What has no place in a text of several lines.
fn is_odd(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::{Finding, Level};
    use crate::skill::{Parameter, ParameterKind, ParameterValue, SkillSpec};
    use serde_json::json;

    fn skill() -> SkillSpec {
        SkillSpec::new("review".parse().unwrap(), "Reviews code. Use it before a merge.", "Look at {{path}}.")
    }

    fn at(findings: &[Finding], level: Level) -> Vec<&str> {
        findings.iter().filter(|finding| finding.level == level).map(|finding| finding.pointer.as_str()).collect()
    }

    #[test]
    fn a_sound_skill_has_no_findings() {
        let mut skill = skill();
        skill.parameters.push(Parameter::new("path", ParameterKind::FilePath));
        assert_eq!(skill.findings(), []);
    }

    #[test]
    fn each_rule_is_told_where_it_is_broken() {
        let change = |change: fn(&mut SkillSpec)| {
            let mut skill = skill();
            skill.parameters.push(Parameter::new("path", ParameterKind::Text));
            change(&mut skill);
            skill.findings()
        };
        type Change = fn(&mut SkillSpec);
        let errors: [(Change, &str); 12] = [
            (|skill| skill.description = " ".into(), "/description"),
            (|skill| skill.description = "x".repeat(1025), "/description"),
            (|skill| skill.description.push('\u{1b}'), "/description"),
            (|skill| skill.body = "x".repeat(256 * 1024 + 1) + "{{path}}", "/body"),
            (|skill| skill.body.push('\0'), "/body"),
            (|skill| skill.category = Some("a\nb".into()), "/category"),
            (|skill| skill.compatibility = Some("x".repeat(501)), "/compatibility"),
            (|skill| drop(skill.metadata.insert("k".into(), "v".repeat(1025))), "/metadata"),
            (|skill| skill.parameters[0].kind = ParameterKind::Choice, "/parameters/0/choices"),
            (|skill| skill.parameters[0].name = "Path".into(), "/parameters/0/name"),
            (|skill| skill.tools.deny.push(String::new()), "/tools/deny"),
            (|skill| drop(skill.mcp_servers.insert("a/b".into(), json!("x"))), "/mcp_servers/a~1b"),
        ];
        for (broken, pointer) in errors {
            assert_eq!(at(&change(broken), Level::Error), [pointer]);
        }
        let twice = change(|skill| skill.parameters.push(skill.parameters[0].clone()));
        assert_eq!(at(&twice, Level::Error), ["/parameters/1/name"]);
        let default = change(|skill| {
            skill.parameters[0].kind = ParameterKind::Number;
            skill.parameters[0].default = Some(ParameterValue::Text("x".into()));
        });
        assert_eq!(at(&default, Level::Error), ["/parameters/0/default"]);
    }

    #[test]
    fn what_is_odd_is_a_warning() {
        assert_eq!(at(&skill().findings(), Level::Warning), ["/body"], "it is not declared");
        let mut skill = skill();
        skill.parameters =
            vec![Parameter::new("path", ParameterKind::Text), Parameter::new("other", ParameterKind::Text)];
        skill.tools.allow.push("Bash".into());
        assert_eq!(at(&skill.findings(), Level::Warning), ["/parameters/1/name", "/tools/allow"]);
        assert_eq!(at(&skill.findings(), Level::Error), [""; 0]);
    }
}
