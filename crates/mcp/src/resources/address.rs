//! `greenroom://…`: how rooms, runs, skills and files are named.

use domain::{
    ids::{RoomId, RunId},
    skill::{FilePath, SkillName},
};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

const SCHEME: &str = "greenroom://";
/// What a path cannot hold as it is.
const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Room(RoomId),
    Run(RunId),
    Skill(SkillName),
    SkillFile(SkillName, FilePath),
    /// A path in a room's workplace, as it was asked for.
    File(RoomId, String),
}

impl Address {
    pub fn parse(uri: &str) -> Option<Self> {
        let (kind, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (name, path) = match rest.split_once('/') {
            Some((name, rest)) => (name, Some(rest)),
            None => (rest, None),
        };
        let path = match path {
            Some("files") => Some(String::new()),
            Some(path) => Some(percent_decode_str(path.strip_prefix("files/")?).decode_utf8().ok()?.into_owned()),
            None => None,
        };
        Some(match (kind, path) {
            ("rooms", None) => Self::Room(name.parse().ok()?),
            ("rooms", Some(path)) => Self::File(name.parse().ok()?, path),
            ("runs", None) => Self::Run(name.parse().ok()?),
            ("skills", None) => Self::Skill(name.parse().ok()?),
            ("skills", Some(path)) => Self::SkillFile(name.parse().ok()?, path.parse().ok()?),
            _ => return None,
        })
    }
}

pub fn room(id: RoomId) -> String {
    format!("{SCHEME}rooms/{id}")
}

pub fn skill(name: &SkillName) -> String {
    format!("{SCHEME}skills/{name}")
}

pub fn skill_file(name: &SkillName, path: &str) -> String {
    format!("{SCHEME}skills/{name}/files/{}", utf8_percent_encode(path, RESERVED))
}

#[cfg(test)]
mod tests {
    use super::{Address, room, skill, skill_file};
    use domain::{ids::RoomId, skill::SkillName};

    #[test]
    fn what_is_named_is_found_again() {
        let (id, name): (_, SkillName) = (RoomId::generate(), "code-review".parse().unwrap());
        assert_eq!(Address::parse(&room(id)), Some(Address::Room(id)));
        assert_eq!(Address::parse(&skill(&name)), Some(Address::Skill(name.clone())));
        let path = "scripts/a b%?.sh";
        let found = Address::parse(&skill_file(&name, path));
        assert_eq!(found, Some(Address::SkillFile(name, path.parse().unwrap())));
        let files = format!("{}/files", room(id));
        assert_eq!(Address::parse(&files), Some(Address::File(id, String::new())));
        assert_eq!(Address::parse(&format!("{files}/a%2Fb")), Some(Address::File(id, "a/b".into())));
        for none in [
            "",
            "greenroom://",
            "greenroom://rooms",
            "greenroom://rooms/x",
            "file:///etc/passwd",
            "greenroom://skills/../x",
            "greenroom://skills/a/files/../b",
            "greenroom://rooms/x/files/a",
            "greenroom://agents/x",
            "GREENROOM://rooms/",
        ] {
            assert_eq!(Address::parse(none), None, "{none}");
        }
    }
}
