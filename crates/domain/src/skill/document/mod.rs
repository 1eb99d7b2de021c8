//! `SKILL.md`: YAML frontmatter between two lines of `---`, then the body.
//!
//! Reading is lenient, because many skills are written by hand: keys nobody knows are told and left out, and a frontmatter
//! that is no YAML (`description: Use when: …`) is read line by line.

use super::{Finding, Parameter, SkillName, SkillSpec};
use crate::{agent::ToolPolicy, name::Name};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;

/// A frontmatter is settings, not content.
const MAX_FRONTMATTER: usize = 64 * 1024;

/// Whom a document is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// An agent's program: only what Agent Skills describes. Programs act on other keys by themselves (`allowed-tools`,
    /// `hooks`), past the person who is to be asked.
    Agents,
    /// Another Greenroom, or a person: all of it.
    People,
}

/// What could be read from a document.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// `None` if it has no name or no description.
    pub skill: Option<SkillSpec>,
    pub findings: Vec<Finding>,
}

/// The frontmatter, if there is one, and the body.
pub fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_rule = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_rule(line)) else { return (None, text) };
    let mut at = first.len();
    for line in lines {
        if is_rule(line) {
            return (Some(&text[first.len()..at]), text[at + line.len()..].trim_start_matches(['\r', '\n']));
        }
        at += line.len();
    }
    (None, text)
}

/// The description and the body of a document, whatever else is in it.
pub fn summary(text: &str) -> (Option<String>, &str) {
    let (front, body) = split(text);
    let front: Option<Front<IgnoredMetadata>> = front.and_then(|front| read(front).or_else(|_| read_lines(front)).ok());
    (front.and_then(|front| front.description), body)
}

/// Reads a document. `folder` is the name of the folder it lies in, for one that does not say its own.
pub fn parse(text: &str, folder: Option<&str>) -> Reading {
    let (front, body) = split(text);
    let mut findings = Vec::new();
    let front = match front {
        Some(front) if front.len() > MAX_FRONTMATTER => {
            findings.push(Finding::error("", format!("the frontmatter has more than {MAX_FRONTMATTER} bytes")));
            Front::default()
        }
        Some(front) => frontmatter(front, &mut findings),
        None => {
            findings.push(Finding::error("", "it does not begin with a frontmatter between two lines of ---"));
            Front::default()
        }
    };
    let skill = front.into_skill(body, folder, &mut findings);
    findings.extend(skill.iter().flat_map(SkillSpec::findings));
    findings.sort_by_key(|finding| finding.level == super::Level::Warning);
    Reading { skill, findings }
}

#[derive(Debug, Deserialize)]
#[serde(bound = "M: DeserializeOwned + Default")]
struct Front<M = BTreeMap<String, String>> {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    #[serde(default)]
    metadata: M,
    #[serde(alias = "display-name")]
    display_name: Option<String>,
    version: Option<String>,
    category: Option<String>,
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<OneOrMany>,
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default, alias = "mcpServers")]
    mcp_servers: BTreeMap<String, Value>,
    #[serde(default)]
    tools: ToolPolicy,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl<M: Default> Default for Front<M> {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            license: None,
            compatibility: None,
            metadata: M::default(),
            display_name: None,
            version: None,
            category: None,
            allowed_tools: None,
            parameters: Vec::new(),
            mcp_servers: BTreeMap::new(),
            tools: ToolPolicy::default(),
            unknown: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Default)]
struct IgnoredMetadata;

impl<'de> Deserialize<'de> for IgnoredMetadata {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

fn read<T: DeserializeOwned>(front: &str) -> Result<T, String> {
    // The budget for depth, aliases and size is the library's default: frontmatters are small.
    serde_saphyr::from_str(front).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn frontmatter(front: &str, findings: &mut Vec<Finding>) -> Front {
    if front.trim().is_empty() {
        return Front::default();
    }
    let strict = match read::<Front>(front) {
        Ok(front) => return front,
        Err(error) => error,
    };
    // Metadata is a map of text by the rules; what else is in there is kept as JSON text.
    if let Ok(front) = read::<Front<BTreeMap<String, Value>>>(front) {
        findings.push(Finding::warning("/metadata", "metadata is a map of texts; other values are kept as JSON text"));
        return front.with_metadata(texts);
    }
    match read_lines::<Front>(front) {
        Ok(front) => {
            let message = format!("the frontmatter is not valid YAML and was read line by line: {strict}");
            findings.push(Finding::warning("", message));
            front
        }
        Err(_) => {
            findings.push(Finding::error("", format!("the frontmatter cannot be read: {strict}")));
            Front::default()
        }
    }
}

fn texts(metadata: BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    metadata.into_iter().map(|(key, value)| (key, text(value))).collect()
}

/// `key: value` lines, each value as it stands. Lines that go on below a key are left out.
fn read_lines<T: DeserializeOwned>(front: &str) -> Result<T, String> {
    const TEXTS: [&str; 8] =
        ["name", "description", "license", "compatibility", "version", "category", "display_name", "allowed-tools"];
    let mut found = serde_json::Map::new();
    for line in front.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-'])) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if TEXTS.contains(&key.trim()) && !value.is_empty() && !matches!(value, "|" | ">" | "|-" | ">-") {
            let inner = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
            let value = inner('"').or_else(|| inner('\'')).unwrap_or(value);
            found.insert(key.trim().to_owned(), value.into());
        }
    }
    match found.is_empty() {
        true => Err("it has no key that is known".into()),
        false => serde_json::from_value(Value::Object(found)).map_err(|error| error.to_string()),
    }
}

impl<M> Front<M> {
    fn with_metadata<N>(self, change: impl FnOnce(M) -> N) -> Front<N> {
        Front {
            name: self.name,
            description: self.description,
            license: self.license,
            compatibility: self.compatibility,
            metadata: change(self.metadata),
            display_name: self.display_name,
            version: self.version,
            category: self.category,
            allowed_tools: self.allowed_tools,
            parameters: self.parameters,
            mcp_servers: self.mcp_servers,
            tools: self.tools,
            unknown: self.unknown,
        }
    }
}

impl Front {
    fn into_skill(mut self, body: &str, folder: Option<&str>, findings: &mut Vec<Finding>) -> Option<SkillSpec> {
        for key in self.unknown.keys().take(20) {
            findings
                .push(Finding::warning(format!("/{key}"), format!("the key {key:?} is not used here and not kept")));
        }
        let name = match self.name.as_deref().or(folder).map(str::parse::<SkillName>) {
            Some(Ok(name)) => Some(name),
            Some(Err(error)) => {
                findings.push(Finding::error("/name", error.to_string()));
                None
            }
            None => {
                findings.push(Finding::error("/name", "a skill needs a name"));
                None
            }
        };
        if self.description.is_none() {
            let message = "a skill needs a description: what it does and when to use it; agents choose by it";
            findings.push(Finding::error("/description", message));
        }
        // In metadata by the rules of Agent Skills, beside it by habit.
        let mut either = |direct: Option<String>, keys: &[&str]| {
            let inside = keys.iter().filter_map(|key| self.metadata.remove(*key)).next();
            direct.or(inside).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let label = either(self.version.take(), &["version"]);
        let category = either(self.category.take(), &["category"]);
        let display_name = either(self.display_name.take(), &["display-name", "display_name"]);
        let display_name = display_name.and_then(|text| match Name::parse(&text) {
            Ok(name) => Some(name),
            Err(error) => {
                findings.push(Finding::error("/display_name", error.to_string()));
                None
            }
        });
        let mut tools = self.tools;
        match self.allowed_tools {
            Some(OneOrMany::One(text)) => tools.allow.extend(words(&text)),
            Some(OneOrMany::Many(list)) => tools.allow.extend(list),
            None => {}
        }
        tools.allow.dedup();
        let mut skill = SkillSpec::new(name?, self.description?.trim(), body);
        skill.display_name = display_name;
        (skill.category, skill.label) = (category, label);
        (skill.license, skill.compatibility) = (self.license, self.compatibility);
        (skill.metadata, skill.parameters) = (self.metadata, self.parameters);
        (skill.mcp_servers, skill.tools) = (self.mcp_servers, tools);
        Some(skill)
    }
}

/// By spaces, as Agent Skills has it, or by commas, as many write it; not inside parentheses.
fn words(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let split = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[derive(Serialize)]
struct Printed<'a> {
    name: &'a SkillName,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a [Parameter]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_servers: Option<&'a BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a ToolPolicy>,
}

impl SkillSpec {
    /// The whole document with this body.
    pub fn document(&self, body: &str, reader: For) -> String {
        let mut metadata: BTreeMap<&str, &str> = self.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let named = [
            ("version", self.label.as_deref()),
            ("category", self.category.as_deref()),
            ("display-name", self.display_name.as_ref().map(Name::as_str)),
        ];
        metadata.extend(named.into_iter().filter_map(|(key, value)| Some((key, value?))));
        let all = reader == For::People;
        let printed = Printed {
            name: &self.name,
            description: &self.description,
            license: self.license.as_deref(),
            compatibility: self.compatibility.as_deref(),
            metadata,
            parameters: Some(self.parameters.as_slice()).filter(|list| all && !list.is_empty()),
            mcp_servers: Some(&self.mcp_servers).filter(|servers| all && !servers.is_empty()),
            tools: Some(&self.tools).filter(|tools| all && **tools != ToolPolicy::default()),
        };
        // JSON is YAML: where the printer cannot, this can, and neither fails on texts and maps of them.
        let front = serde_saphyr::to_string(&printed).or_else(|_| serde_json::to_string(&printed)).unwrap_or_default();
        let gap = if body.is_empty() { "" } else { "\n" };
        format!("---\n{}\n---\n{gap}{body}", front.trim_end())
    }
}

#[cfg(test)]
mod tests;
