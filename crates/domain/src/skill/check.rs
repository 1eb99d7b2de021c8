//! Validation of skills. A skill with an error is not stored; a warning is only shown.

use super::{Parameter, ParameterKind, SkillSpec, parameter::is_parameter_name, placeholders};
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
/// Agent Skills recommends a body below 5,000 tokens, which is about this much English.
const ADVISED_BODY_BYTES: usize = 20_000;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Finding)]
pub struct SkillFinding {
    pub level: FindingLevel,
    /// A JSON pointer to the field (RFC 6901).
    pub pointer: String,
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Level)]
pub enum FindingLevel {
    Error,
    Warning,
}

impl SkillFinding {
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: FindingLevel::Error, pointer: pointer.into(), message: message.into() }
    }

    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: FindingLevel::Warning, pointer: pointer.into(), message: message.into() }
    }
}

impl SkillSpec {
    /// Returns all errors, then all warnings.
    pub fn findings(&self) -> Vec<SkillFinding> {
        let mut findings = Vec::new();
        self.check_texts(&mut findings);
        self.check_parameters(&mut findings);
        self.check_tools_and_servers(&mut findings);
        findings.sort_by_key(|finding| finding.level == FindingLevel::Warning);
        findings
    }

    fn check_texts(&self, findings: &mut Vec<SkillFinding>) {
        let length = self.description.chars().count();
        if self.description.trim().is_empty() {
            let message = "a skill needs a description: what it does and when to use it; agents choose by it";
            findings.push(SkillFinding::error("/description", message));
        } else if length > MAX_DESCRIPTION {
            let message = format!("a description has at most {MAX_DESCRIPTION} characters, this one has {length}");
            findings.push(SkillFinding::error("/description", message));
        }
        if self.description.contains(is_forbidden) {
            findings.push(SkillFinding::error("/description", "the description contains a control character"));
        }
        if self.body.len() > MAX_BODY_BYTES {
            let message = format!("a body has at most {MAX_BODY_BYTES} bytes, this one has {}", self.body.len());
            findings.push(SkillFinding::error("/body", message));
        } else if self.body.len() > ADVISED_BODY_BYTES {
            let message = "the body is long; agents follow a body below 5,000 tokens better. Move details into files";
            findings.push(SkillFinding::warning("/body", message));
        }
        if self.body.contains('\0') {
            findings.push(SkillFinding::error("/body", "the body contains a NUL character"));
        }
        if self.body.trim().is_empty() {
            findings.push(SkillFinding::warning("/body", "the body is empty"));
        }
        for (pointer, text, most) in [
            ("/category", &self.category, MAX_WORD),
            ("/label", &self.label, MAX_WORD),
            ("/license", &self.license, MAX_LINE),
            ("/compatibility", &self.compatibility, MAX_LINE),
        ] {
            if text.as_ref().is_some_and(|text| !is_line(text, most)) {
                findings.push(SkillFinding::error(pointer, format!("it must be one line of 1 to {most} characters")));
            }
        }
        let fits = |(key, value): (&String, &String)| {
            is_line(key, MAX_WORD) && value.chars().count() <= MAX_METADATA_VALUE && !value.contains(is_forbidden)
        };
        if self.metadata.len() > MAX_METADATA || !self.metadata.iter().all(fits) {
            let message = format!(
                "metadata has at most {MAX_METADATA} entries with names up to {MAX_WORD} and values up to \
                 {MAX_METADATA_VALUE} characters"
            );
            findings.push(SkillFinding::error("/metadata", message));
        }
    }

    fn check_parameters(&self, findings: &mut Vec<SkillFinding>) {
        if self.parameters.len() > MAX_PARAMETERS {
            findings
                .push(SkillFinding::error("/parameters", format!("a skill has at most {MAX_PARAMETERS} parameters")));
            return;
        }
        let mut names = BTreeSet::new();
        let used: BTreeSet<&str> = placeholders(&self.body).collect();
        for (n, parameter) in self.parameters.iter().enumerate() {
            let at = |field: &str| format!("/parameters/{n}/{field}");
            if !is_parameter_name(&parameter.name) {
                let message =
                    "a parameter's name has 1 to 64 characters of a-z, 0-9, _ and -, and begins with a letter";
                findings.push(SkillFinding::error(at("name"), message));
            } else if !names.insert(parameter.name.as_str()) {
                findings.push(SkillFinding::error(
                    at("name"),
                    format!("the parameter {} is defined twice", parameter.name),
                ));
            } else if !used.contains(parameter.name.as_str()) {
                let message = format!("the body does not use {{{{{}}}}}", parameter.name);
                findings.push(SkillFinding::warning(at("name"), message));
            }
            check_parameter(parameter, at, findings);
        }
        for name in used.into_iter().filter(|name| !names.contains(name)).take(MAX_PARAMETERS) {
            let message = format!("{{{{{name}}}}} is not a parameter of this skill; it is left as text");
            findings.push(SkillFinding::warning("/body", message));
        }
    }

    fn check_tools_and_servers(&self, findings: &mut Vec<SkillFinding>) {
        let is_tool = |tool: &String| is_line(tool, 200);
        for (pointer, list) in
            [("/tools/allow", &self.tools.allow), ("/tools/ask", &self.tools.ask), ("/tools/deny", &self.tools.deny)]
        {
            if list.len() > MAX_TOOLS || !list.iter().all(is_tool) {
                let message = format!("at most {MAX_TOOLS} patterns, each one line of 1 to 200 characters");
                findings.push(SkillFinding::error(pointer, message));
            }
        }
        if !self.tools.allow.is_empty() {
            let message = format!("when invoked, these tools run without approval: {}", self.tools.allow.join(", "));
            findings.push(SkillFinding::warning("/tools/allow", message));
        }
        if self.mcp_servers.len() > MAX_SERVERS {
            findings
                .push(SkillFinding::error("/mcp_servers", format!("a skill has at most {MAX_SERVERS} MCP servers")));
        }
        for (name, server) in self.mcp_servers.iter().take(MAX_SERVERS) {
            let pointer = format!("/mcp_servers/{}", name.replace('~', "~0").replace('/', "~1"));
            if !is_line(name, MAX_WORD) || !server.is_object() || server.to_string().len() > MAX_SERVER_BYTES {
                let message = "an MCP server has a name of 1 to 64 characters and settings as in .mcp.json";
                findings.push(SkillFinding::error(pointer, message));
            }
        }
    }
}

fn check_parameter(parameter: &Parameter, at: impl Fn(&str) -> String, findings: &mut Vec<SkillFinding>) {
    let is_choice = parameter.kind == ParameterKind::Choice;
    if is_choice == parameter.choices.is_empty() {
        let message = if is_choice {
            "a parameter of type choice needs choices"
        } else {
            "only a parameter of type choice has choices"
        };
        findings.push(SkillFinding::error(at("choices"), message));
    }
    if parameter.choices.len() > MAX_CHOICES || !parameter.choices.iter().all(|choice| is_line(choice, MAX_CHOICE)) {
        let message = format!("at most {MAX_CHOICES} choices, each one line of 1 to {MAX_CHOICE} characters");
        findings.push(SkillFinding::error(at("choices"), message));
    }
    if parameter.description.as_ref().is_some_and(|text| text.chars().count() > MAX_LINE || text.contains(is_forbidden))
    {
        findings.push(SkillFinding::error(
            at("description"),
            format!("a parameter description has at most {MAX_LINE} characters"),
        ));
    }
    if let Some(default) = &parameter.default {
        if let Err(why) = parameter.validate(default) {
            findings.push(SkillFinding::error(at("default"), format!("the default is invalid: it {why}")));
        } else if parameter.required {
            findings.push(SkillFinding::warning(at("required"), "a parameter with a default is never missing"));
        }
    }
}

fn is_line(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.contains(char::is_control)
}

/// Control characters that are not allowed in multi-line text.
fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::{FindingLevel, SkillFinding};
    use crate::skill::{Parameter, ParameterKind, ParameterValue, SkillSpec};
    use serde_json::json;

    fn skill() -> SkillSpec {
        SkillSpec::new("review".parse().unwrap(), "Reviews code. Use it before a merge.", "Look at {{path}}.")
    }

    fn at(findings: &[SkillFinding], level: FindingLevel) -> Vec<&str> {
        findings.iter().filter(|finding| finding.level == level).map(|finding| finding.pointer.as_str()).collect()
    }

    #[test]
    fn a_valid_skill_has_no_findings() {
        let mut skill = skill();
        skill.parameters.push(Parameter::new("path", ParameterKind::FilePath));
        assert_eq!(skill.findings(), []);
    }

    #[test]
    fn each_error_points_to_its_field() {
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
            assert_eq!(at(&change(broken), FindingLevel::Error), [pointer]);
        }
        let twice = change(|skill| skill.parameters.push(skill.parameters[0].clone()));
        assert_eq!(at(&twice, FindingLevel::Error), ["/parameters/1/name"]);
        let default = change(|skill| {
            skill.parameters[0].kind = ParameterKind::Number;
            skill.parameters[0].default = Some(ParameterValue::Text("x".into()));
        });
        assert_eq!(at(&default, FindingLevel::Error), ["/parameters/0/default"]);
    }

    #[test]
    fn unusual_settings_are_warnings() {
        assert_eq!(at(&skill().findings(), FindingLevel::Warning), ["/body"], "the placeholder is not declared");
        let mut skill = skill();
        skill.parameters =
            vec![Parameter::new("path", ParameterKind::Text), Parameter::new("other", ParameterKind::Text)];
        skill.tools.allow.push("Bash".into());
        assert_eq!(at(&skill.findings(), FindingLevel::Warning), ["/parameters/1/name", "/tools/allow"]);
        assert_eq!(at(&skill.findings(), FindingLevel::Error), [""; 0]);
    }
}
