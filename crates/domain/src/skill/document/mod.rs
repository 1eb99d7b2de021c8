//! `SKILL.md`: YAML frontmatter between two lines of `---`, then the body.
//!
//! Parsing is lenient, because many skills are written by hand: unknown keys are reported and dropped, and a
//! frontmatter that is not valid YAML (`description: Use when: …`) is read line by line.

use super::{Parameter, SkillFinding, SkillName, SkillSpec};
use crate::{agent::ToolPolicy, name::Name};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;

/// A frontmatter holds settings, not content.
const MAX_FRONTMATTER: usize = 64 * 1024;

/// Who a document is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// An agent's program: only keys defined by Agent Skills. Programs act on other keys (`allowed-tools`, `hooks`)
    /// without asking the user.
    Agents,
    /// Another Greenroom server or a person: all keys.
    People,
}

/// The result of parsing a document.
#[derive(Clone, PartialEq, Debug)]
pub struct ParsedSkill {
    /// `None` if the document has no name or no description.
    pub skill: Option<SkillSpec>,
    pub findings: Vec<SkillFinding>,
}

/// Splits a document into the frontmatter, if there is one, and the body.
pub fn split_frontmatter(text: &str) -> (Option<&str>, &str) {
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

/// Returns the description and the body of a document; the rest may be invalid.
pub fn summary(text: &str) -> (Option<String>, &str) {
    let (front, body) = split_frontmatter(text);
    let front: Option<Frontmatter<IgnoredMetadata>> =
        front.and_then(|front| read(front).or_else(|_| read_lines(front)).ok());
    (front.and_then(|front| front.description), body)
}

/// Parses a document. `folder` is the name of its folder, used if the document has no name.
pub fn parse(text: &str, folder: Option<&str>) -> ParsedSkill {
    let (front, body) = split_frontmatter(text);
    let mut findings = Vec::new();
    let front = match front {
        Some(front) if front.len() > MAX_FRONTMATTER => {
            findings.push(SkillFinding::error("", format!("the frontmatter has more than {MAX_FRONTMATTER} bytes")));
            Frontmatter::default()
        }
        Some(front) => frontmatter(front, &mut findings),
        None => {
            findings.push(SkillFinding::error(
                "",
                "the document does not begin with a frontmatter between two lines of ---",
            ));
            Frontmatter::default()
        }
    };
    let skill = front.into_skill(body, folder, &mut findings);
    findings.extend(skill.iter().flat_map(SkillSpec::findings));
    findings.sort_by_key(|finding| finding.level == super::FindingLevel::Warning);
    ParsedSkill { skill, findings }
}

#[derive(Debug, Deserialize)]
#[serde(bound = "M: DeserializeOwned + Default")]
struct Frontmatter<M = BTreeMap<String, String>> {
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

impl<M: Default> Default for Frontmatter<M> {
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
    // The library's default limits for depth, aliases and size are enough: frontmatters are small.
    serde_saphyr::from_str(front).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn frontmatter(front: &str, findings: &mut Vec<SkillFinding>) -> Frontmatter {
    if front.trim().is_empty() {
        return Frontmatter::default();
    }
    let strict = match read::<Frontmatter>(front) {
        Ok(front) => return front,
        Err(error) => error,
    };
    // The specification allows only text values; other values are kept as JSON text.
    if let Ok(front) = read::<Frontmatter<BTreeMap<String, Value>>>(front) {
        findings.push(SkillFinding::warning(
            "/metadata",
            "metadata values should be text; other values are kept as JSON text",
        ));
        return front.with_metadata(texts);
    }
    match read_lines::<Frontmatter>(front) {
        Ok(front) => {
            let message = format!("the frontmatter is not valid YAML and was read line by line: {strict}");
            findings.push(SkillFinding::warning("", message));
            front
        }
        Err(_) => {
            findings.push(SkillFinding::error("", format!("the frontmatter cannot be read: {strict}")));
            Frontmatter::default()
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

/// Reads `key: value` lines literally. Continuation lines are skipped.
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
        true => Err("no known key".into()),
        false => serde_json::from_value(Value::Object(found)).map_err(|error| error.to_string()),
    }
}

impl<M> Frontmatter<M> {
    fn with_metadata<N>(self, change: impl FnOnce(M) -> N) -> Frontmatter<N> {
        Frontmatter {
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

impl Frontmatter {
    fn into_skill(mut self, body: &str, folder: Option<&str>, findings: &mut Vec<SkillFinding>) -> Option<SkillSpec> {
        for key in self.unknown.keys().take(20) {
            findings.push(SkillFinding::warning(
                format!("/{key}"),
                format!("the unknown key {key:?} is ignored and not stored"),
            ));
        }
        let name = match self.name.as_deref().or(folder).map(str::parse::<SkillName>) {
            Some(Ok(name)) => Some(name),
            Some(Err(error)) => {
                findings.push(SkillFinding::error("/name", error.to_string()));
                None
            }
            None => {
                findings.push(SkillFinding::error("/name", "a skill needs a name"));
                None
            }
        };
        if self.description.is_none() {
            let message = "a skill needs a description: what it does and when to use it; agents choose by it";
            findings.push(SkillFinding::error("/description", message));
        }
        // Agent Skills puts these in metadata; many documents have them at the top level.
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
                findings.push(SkillFinding::error("/display_name", error.to_string()));
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

/// Splits by spaces, as in Agent Skills, or by commas, as many authors write; not inside parentheses.
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
struct PrintedFrontmatter<'a> {
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
    /// Returns the whole document with this body.
    pub fn document(&self, body: &str, audience: Audience) -> String {
        let mut metadata: BTreeMap<&str, &str> = self.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let named = [
            ("version", self.label.as_deref()),
            ("category", self.category.as_deref()),
            ("display-name", self.display_name.as_ref().map(Name::as_str)),
        ];
        metadata.extend(named.into_iter().filter_map(|(key, value)| Some((key, value?))));
        let all = audience == Audience::People;
        let printed = PrintedFrontmatter {
            name: &self.name,
            description: &self.description,
            license: self.license.as_deref(),
            compatibility: self.compatibility.as_deref(),
            metadata,
            parameters: Some(self.parameters.as_slice()).filter(|list| all && !list.is_empty()),
            mcp_servers: Some(&self.mcp_servers).filter(|servers| all && !servers.is_empty()),
            tools: Some(&self.tools).filter(|tools| all && **tools != ToolPolicy::default()),
        };
        // JSON is valid YAML, so it is the fallback. Neither fails on text and maps of text.
        let front = serde_saphyr::to_string(&printed).or_else(|_| serde_json::to_string(&printed)).unwrap_or_default();
        let gap = if body.is_empty() { "" } else { "\n" };
        format!("---\n{}\n---\n{gap}{body}", front.trim_end())
    }
}

#[cfg(test)]
mod tests;
