//! `${VAR}` and `${VAR:-default}` in the texts of a server. Nothing else is special: `$VAR`, `${}` and `${1}` stand for
//! themselves, and what is put in is not looked at again.

use super::Transport;
use std::collections::{BTreeMap, BTreeSet};

/// A variable that is named without a default and has no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "needs the variable {variable}, which is not set (in its {field}); set it, or write ${{{variable}:-a default}}"
)]
pub struct Unset {
    pub variable: String,
    pub field: String,
}

enum Piece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("${").map(|at| from + at) {
        let inside = &rest[at + 2..];
        let reference = inside.find('}').and_then(|end| Some((reference(&inside[..end])?, end)));
        let Some(((name, default), end)) = reference else {
            from = at + 2;
            continue;
        };
        pieces.push(Piece::Text(&rest[..at]));
        pieces.push(Piece::Variable { name, default });
        (rest, from) = (&inside[end + 1..], 0);
    }
    pieces.push(Piece::Text(rest));
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

/// A variable that is set to nothing is set. `Err` is the first name without a value.
pub fn substitute(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Variable { name, default } => match (lookup(name), default) {
                (Some(value), _) => filled.push_str(&value),
                (None, Some(default)) => filled.push_str(default),
                (None, None) => return Err(name.to_owned()),
            },
        }
    }
    Ok(filled)
}

/// The names that are asked for, with or without a default.
pub fn variables_in(transport: &Transport) -> BTreeSet<String> {
    let mut texts: Vec<&String> = Vec::new();
    match transport {
        Transport::Stdio { command, args, env } => texts.extend([command].into_iter().chain(args).chain(env.values())),
        Transport::Http { url, headers } | Transport::Sse { url, headers } => {
            texts.extend([url].into_iter().chain(headers.values()));
        }
    }
    let names = texts.into_iter().flat_map(|text| pieces(text)).filter_map(|piece| match piece {
        Piece::Variable { name, .. } => Some(name.to_owned()),
        Piece::Text(_) => None,
    });
    names.collect()
}

pub(super) fn resolve(transport: &Transport, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Transport, Unset> {
    let fill = |field: &dyn Fn() -> String, text: &String| {
        substitute(text, lookup).map_err(|variable| Unset { variable, field: field() })
    };
    let fill_map = |kind: &str, map: &BTreeMap<String, String>| {
        let filled = map.iter().map(|(key, value)| Ok((key.clone(), fill(&|| format!("{kind} {key}"), value)?)));
        filled.collect::<Result<BTreeMap<_, _>, Unset>>()
    };
    Ok(match transport {
        Transport::Stdio { command, args, env } => Transport::Stdio {
            command: fill(&|| "command".into(), command)?,
            args: args.iter().map(|arg| fill(&|| "args".into(), arg)).collect::<Result<_, _>>()?,
            env: fill_map("env", env)?,
        },
        Transport::Http { url, headers } => {
            Transport::Http { url: fill(&|| "url".into(), url)?, headers: fill_map("header", headers)? }
        }
        Transport::Sse { url, headers } => {
            Transport::Sse { url: fill(&|| "url".into(), url)?, headers: fill_map("header", headers)? }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{substitute, variables_in};
    use crate::mcp::{ConfigError, ServerConfig, Transport};

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("1".into()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${A}".into()),
            _ => None,
        }
    }

    #[test]
    fn what_is_put_in_and_what_stays() {
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
    fn an_unset_one_says_where_it_is_needed() {
        let transport = Transport::Http {
            url: "http://host/${A}".into(),
            headers: [("authorization".to_owned(), "Bearer ${TOKEN}".to_owned())].into(),
        };
        assert_eq!(variables_in(&transport).into_iter().collect::<Vec<_>>(), ["A", "TOKEN"]);
        let error = ServerConfig::new(transport).resolve(&lookup).unwrap_err();
        assert_eq!(
            error.to_string(),
            "needs the variable TOKEN, which is not set (in its header authorization); set it, or write ${TOKEN:-a default}"
        );
    }

    #[test]
    fn what_is_put_in_is_checked() {
        let config = |url: &str| ServerConfig::new(Transport::Http { url: url.into(), headers: [].into() });
        assert!(matches!(config("${A}").resolve(&lookup), Err(ConfigError::Entry(_))));
        let header = Transport::Sse { url: "http://h".into(), headers: [("a".into(), "${V}".into())].into() };
        assert!(ServerConfig::new(header).resolve(&|_| Some("x\r\ny: z".into())).is_err());
    }
}
