//! `${VAR}` and `${VAR:-default}` in a server's settings. Nothing else is special: `$VAR`, `${}` and `${1}` are literal
//! text, and values are not expanded again.

use super::McpTransport;
use std::collections::{BTreeMap, BTreeSet};

/// A referenced variable that has neither a value nor a default.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "needs the variable {variable}, which is not set (in its {field}); set it, or write ${{{variable}:-a default}}"
)]
pub struct UnsetVariable {
    pub variable: String,
    pub field: String,
}

enum TemplatePiece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

fn pieces(text: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("${").map(|at| from + at) {
        let inside = &rest[at + 2..];
        let reference = inside.find('}').and_then(|end| Some((reference(&inside[..end])?, end)));
        let Some(((name, default), end)) = reference else {
            from = at + 2;
            continue;
        };
        pieces.push(TemplatePiece::Text(&rest[..at]));
        pieces.push(TemplatePiece::Variable { name, default });
        (rest, from) = (&inside[end + 1..], 0);
    }
    pieces.push(TemplatePiece::Text(rest));
    pieces
}

fn reference(inside: &str) -> Option<(&str, Option<&str>)> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    is_name.then_some((name, default))
}

/// Replaces all references. An empty value counts as set. `Err` is the first name without a value.
pub fn substitute(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            TemplatePiece::Text(text) => filled.push_str(text),
            TemplatePiece::Variable { name, default } => match (lookup(name), default) {
                (Some(value), _) => filled.push_str(&value),
                (None, Some(default)) => filled.push_str(default),
                (None, None) => return Err(name.to_owned()),
            },
        }
    }
    Ok(filled)
}

/// Whether settings may use an environment variable of this name, if the operator allows it. Greenroom's own settings contain
/// secrets such as the database's password (invariant 17).
pub fn may_be_allowed(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=128).contains(&name.len())
        && name.chars().all(is_letter)
        && !name.to_ascii_uppercase().starts_with("GREENROOM")
}

/// The names of all referenced variables, with or without a default.
pub fn variables_in(transport: &McpTransport) -> BTreeSet<String> {
    let mut texts: Vec<&String> = Vec::new();
    match transport {
        McpTransport::Stdio { command, args, env } => {
            texts.extend([command].into_iter().chain(args).chain(env.values()))
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            texts.extend([url].into_iter().chain(headers.values()));
        }
    }
    let names = texts.into_iter().flat_map(|text| pieces(text)).filter_map(|piece| match piece {
        TemplatePiece::Variable { name, .. } => Some(name.to_owned()),
        TemplatePiece::Text(_) => None,
    });
    names.collect()
}

pub(super) fn resolve(
    transport: &McpTransport,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<McpTransport, UnsetVariable> {
    let fill = |field: &dyn Fn() -> String, text: &String| {
        substitute(text, lookup).map_err(|variable| UnsetVariable { variable, field: field() })
    };
    let fill_map = |kind: &str, map: &BTreeMap<String, String>| {
        let filled = map.iter().map(|(key, value)| Ok((key.clone(), fill(&|| format!("{kind} {key}"), value)?)));
        filled.collect::<Result<BTreeMap<_, _>, UnsetVariable>>()
    };
    Ok(match transport {
        McpTransport::Stdio { command, args, env } => McpTransport::Stdio {
            command: fill(&|| "command".into(), command)?,
            args: args.iter().map(|arg| fill(&|| "args".into(), arg)).collect::<Result<_, _>>()?,
            env: fill_map("env", env)?,
        },
        McpTransport::Http { url, headers } => {
            McpTransport::Http { url: fill(&|| "url".into(), url)?, headers: fill_map("header", headers)? }
        }
        McpTransport::Sse { url, headers } => {
            McpTransport::Sse { url: fill(&|| "url".into(), url)?, headers: fill_map("header", headers)? }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{substitute, variables_in};
    use crate::mcp::{McpConfigError, McpServerConfig, McpTransport};

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("1".into()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${A}".into()),
            _ => None,
        }
    }

    #[test]
    fn replaces_references_and_keeps_other_text() {
        for (text, filled) in [
            ("", Ok("")),
            ("plain $A $ {A}", Ok("plain $A $ {A}")),
            ("${A}", Ok("1")),
            ("x${A}y${A}z", Ok("x1y1z")),
            ("${A:-2}", Ok("1")),
            ("${B:-2}", Ok("2")),
            ("${B:-}", Ok("")),
            ("${B:-a:-b}", Ok("a:-b")),
            ("${EMPTY:-2}", Ok("")),
            ("${TRICK}", Ok("${A}")),
            ("${B:-${A}}", Ok("${A}")),
            ("${", Ok("${")),
            ("${A", Ok("${A")),
            ("${}", Ok("${}")),
            ("${1}", Ok("${1}")),
            ("${A-2}", Ok("${A-2}")),
            ("${${A}", Ok("${1")),
            ("ä${A}ö", Ok("ä1ö")),
            ("${A}${B}", Err("B")),
        ] {
            let expected = filled.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(substitute(text, &lookup), expected, "{text}");
        }
    }

    #[test]
    fn an_unset_variable_error_names_the_field() {
        let transport = McpTransport::Http {
            url: "http://host/${A}".into(),
            headers: [("authorization".to_owned(), "Bearer ${TOKEN}".to_owned())].into(),
        };
        assert_eq!(variables_in(&transport).into_iter().collect::<Vec<_>>(), ["A", "TOKEN"]);
        let error = McpServerConfig::new(transport).resolve(&lookup).unwrap_err();
        assert_eq!(
            error.to_string(),
            "needs the variable TOKEN, which is not set (in its header authorization); set it, or write ${TOKEN:-a default}"
        );
    }

    #[test]
    fn the_result_of_substitution_is_validated() {
        let config = |url: &str| McpServerConfig::new(McpTransport::Http { url: url.into(), headers: [].into() });
        assert!(matches!(config("${A}").resolve(&lookup), Err(McpConfigError::Entry(_))));
        let header = McpTransport::Sse { url: "http://h".into(), headers: [("a".into(), "${V}".into())].into() };
        assert!(McpServerConfig::new(header).resolve(&|_| Some("x\r\ny: z".into())).is_err());
    }
}
