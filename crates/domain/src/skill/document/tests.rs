use super::{Audience, parse, split_frontmatter, summary};
use crate::{
    name::Name,
    skill::{FindingLevel, Parameter, ParameterKind, ParameterValue, SkillSpec},
};
use proptest::prelude::*;
use serde_json::json;

fn errors(text: &str) -> Vec<String> {
    let findings = parse(text, None).findings.into_iter();
    findings.filter(|finding| finding.level == FindingLevel::Error).map(|finding| finding.pointer).collect()
}

#[test]
fn parses_a_document_as_defined_by_agent_skills() {
    let text = "---\nname: pdf-forms\ndescription: Fills PDF forms. Use it for PDFs.\nlicense: Apache-2.0\n\
                compatibility: needs python\nallowed-tools: Read Bash(git add:*),Write\nmetadata:\n  author: ann\n  \
                version: 1.10\n  category: documents\n---\n\n# Forms\n\nDo it.\n";
    let reading = parse(text, None);
    let skill = reading.skill.unwrap();
    assert_eq!(skill.name.as_str(), "pdf-forms");
    assert_eq!(skill.body, "# Forms\n\nDo it.\n");
    assert_eq!((skill.label.as_deref(), skill.category.as_deref()), (Some("1.10"), Some("documents")));
    assert_eq!(skill.metadata.into_iter().collect::<Vec<_>>(), [("author".to_owned(), "ann".to_owned())]);
    assert_eq!(skill.tools.allow, ["Read", "Bash(git add:*)", "Write"]);
    assert_eq!(summary(text), (Some("Fills PDF forms. Use it for PDFs.".to_owned()), "# Forms\n\nDo it.\n"));
}

#[test]
fn reads_version_and_category_at_the_top_level_and_reports_unknown_keys() {
    let reading = parse("---\nname: a\ndescription: b\nversion: 2.0\ncategory: c\nhooks: {Stop: x}\n---\nbody", None);
    let skill = reading.skill.unwrap();
    assert_eq!((skill.label.as_deref(), skill.category.as_deref()), (Some("2.0"), Some("c")));
    assert_eq!(reading.findings.iter().map(|finding| finding.pointer.as_str()).collect::<Vec<_>>(), ["/hooks"]);
}

#[test]
fn invalid_yaml_is_read_line_by_line() {
    let text = "---\r\nname: when\r\ndescription: Use when: someone asks, \"always\"\r\nmetadata:\r\n  a: b\r\n---\r\nBody\r\n";
    let reading = parse(&format!("\u{feff}{text}"), None);
    let skill = reading.skill.unwrap();
    assert_eq!(skill.description, "Use when: someone asks, \"always\"");
    assert_eq!(skill.body, "Body\r\n");
    assert!(reading.findings.iter().all(|finding| finding.level == FindingLevel::Warning), "{:?}", reading.findings);
}

#[test]
fn missing_fields_are_reported() {
    assert_eq!(errors("no frontmatter"), ["", "/name", "/description"]);
    assert_eq!(errors("---\nname: A B\ndescription: x\n---\n"), ["/name"]);
    assert_eq!(errors("---\nname: a\n---\n"), ["/description"]);
    assert_eq!(errors("---\n: [\n---\n"), ["", "/name", "/description"]);
    assert_eq!(errors("---\nname: a\ndescription: [1\n---\n"), [""; 0], "a description may begin with a bracket");
    assert!(
        parse("---\ndescription: d\n---\n", Some("folder")).skill.is_some_and(|skill| skill.name.as_str() == "folder")
    );
}

#[test]
fn hostile_yaml_is_bounded() {
    let bomb = "---\nname: a\ndescription: d\nmetadata:\n  a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(0..30)
            .map(|n| {
                format!(
                    "  b{n}: &b{n} [*{p},*{p},*{p},*{p}]\n",
                    p = if n == 0 { "a".into() } else { format!("b{}", n - 1) }
                )
            })
            .collect::<String>()
        + "---\nbody";
    let reading = parse(&bomb, None);
    assert!(reading.skill.is_none_or(|skill| skill.metadata.is_empty()));
    let deep = format!("---\nname: a\ndescription: d\nx: {}{}\n---\nbody", "[".repeat(20_000), "]".repeat(20_000));
    drop(parse(&deep, None));
}

#[test]
fn a_document_for_agents_has_no_keys_that_programs_act_on() {
    let mut skill = full();
    skill.tools.allow.push("Bash".into());
    let text = skill.document("Body.", Audience::Agents);
    let keys: Vec<&str> = split_frontmatter(&text)
        .0
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(keys, ["name", "description", "license", "metadata"]);
    assert!(text.ends_with("\n---\n\nBody."));
}

fn full() -> SkillSpec {
    let mut skill = SkillSpec::new("full".parse().unwrap(), "All of it: every key", "Say {{word}}.\n");
    skill.display_name = Some(Name::parse("Full one").unwrap());
    skill.category = Some("test".into());
    skill.label = Some("1.10".into());
    skill.license = Some("MIT".into());
    skill.metadata.insert("author".into(), "ann".into());
    skill.parameters = vec![
        Parameter {
            default: Some(ParameterValue::Text("yes".into())),
            required: true,
            ..Parameter::new("word", ParameterKind::Text)
        },
        Parameter { default: Some(ParameterValue::Number(3.into())), ..Parameter::new("n", ParameterKind::Number) },
        Parameter { choices: vec!["a".into(), "true".into()], ..Parameter::new("c", ParameterKind::Choice) },
    ];
    skill.mcp_servers.insert("files".into(), json!({"command": "x", "args": ["-y", "1"], "env": {"A": "b"}}));
    skill.tools.deny.push("Bash".into());
    skill
}

#[test]
fn a_document_for_people_parses_to_the_same_skill() {
    let skill = full();
    assert_eq!(parse(&skill.document(&skill.body, Audience::People), None).skill, Some(skill));
}

proptest! {
    #[test]
    fn any_text_survives_printing_and_parsing(
        description in r#"[ -~éß漢\n\t]{0,40}"#, value in r#"[ -~é]{0,30}"#, body in r"[ -~\n-]{0,60}",
    ) {
        let mut skill = SkillSpec::new("a".parse().unwrap(), description.trim(), body.trim_start_matches(['\n', '\r']));
        skill.metadata.insert("key".into(), value);
        let text = skill.document(&skill.body, Audience::People);
        prop_assert_eq!(parse(&text, None).skill, Some(skill), "{}", text);
    }

    #[test]
    fn parsing_never_panics(text in any::<String>(), front in r"[a-z:\[\]{}&*!|>'\x22 \n-]{0,80}") {
        drop(parse(&text, None));
        drop(parse(&format!("---\n{front}\n---\n{text}"), None));
    }
}
