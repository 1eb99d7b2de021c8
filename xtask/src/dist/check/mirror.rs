//! The server from which this machine installs Debian packages: a machine may reach no other.

use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: &str = "/etc/apt/sources.list";
const MORE_SOURCES: &str = "/etc/apt/sources.list.d";
/// For machines that are not Debian themselves.
const DEFAULT: &str = "http://deb.debian.org/debian";

pub fn find(suite: &str) -> String {
    let more = fs::read_dir(MORE_SOURCES).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = more.collect();
    files.sort();
    files.insert(0, PathBuf::from(SOURCES));
    files.iter().find_map(|file| read(file, suite)).unwrap_or_else(|| DEFAULT.to_owned())
}

fn read(file: &Path, suite: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    match file.extension()?.to_str()? {
        "list" => text.lines().find_map(|line| in_line(line, suite)),
        "sources" => text.split("\n\n").find_map(|stanza| in_stanza(stanza, suite)),
        _ => None,
    }
}

/// `deb [signed-by=…] http://deb.debian.org/debian bookworm main`
fn in_line(line: &str, suite: &str) -> Option<String> {
    let line = line.split('#').next()?.trim().strip_prefix("deb ")?.trim_start();
    let line = match line.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => line,
    };
    let mut words = line.split_whitespace();
    let (address, named) = (words.next()?, words.next()?);
    (named == suite && words.any(|component| component == "main")).then(|| address.to_owned())
}

/// The same in fields, one per line.
fn in_stanza(stanza: &str, suite: &str) -> Option<String> {
    let field = |name: &str| {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
        stanza.lines().find_map(value).unwrap_or_default()
    };
    let names = |field: &str, wanted: &str| field.split_whitespace().any(|word| word == wanted);
    let is_wanted = names(&field("Types"), "deb")
        && names(&field("Suites"), suite)
        && names(&field("Components"), "main")
        && !names(&field("Enabled"), "no");
    field("URIs").split_whitespace().next().filter(|_| is_wanted).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let found = |line: &str| in_line(line, "bookworm");
        assert_eq!(found("deb http://a/debian bookworm main contrib").as_deref(), Some("http://a/debian"));
        let signed = "deb [arch=amd64 signed-by=/k.gpg] https://b/debian bookworm main # mirror";
        assert_eq!(found(signed).as_deref(), Some("https://b/debian"));
        for other in ["deb-src http://a/debian bookworm main", "# deb http://a/debian bookworm main", ""] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(found("deb http://a/debian-security bookworm-security main"), None);
        assert_eq!(found("deb https://c/apt bookworm stable"), None);
    }

    #[test]
    fn stanzas_are_read() {
        let stanza = "Types: deb\n# a comment\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\n\
                      Components: main\nSigned-By: /k.gpg\n";
        assert_eq!(in_stanza(stanza, "bookworm").as_deref(), Some("http://a/debian"));
        assert_eq!(in_stanza(stanza, "trixie"), None);
        assert_eq!(in_stanza(&format!("{stanza}Enabled: no\n"), "bookworm"), None);
        assert_eq!(in_stanza(&stanza.replace("main", "non-free"), "bookworm"), None);
    }
}
