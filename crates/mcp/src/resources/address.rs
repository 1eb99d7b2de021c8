//! `greenroom://…` URIs of rooms, runs, skills and files.

use domain::{
    ids::{RoomId, RunId},
    skill::{FilePath, SkillName},
};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

const SCHEME: &str = "greenroom://";
/// Characters that must be encoded in a path.
const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResourceAddress {
    Room(RoomId),
    Run(RunId),
    Skill(SkillName),
    SkillFile(SkillName, FilePath),
    /// A path in a room's workspace, as requested.
    File(RoomId, String),
}

impl ResourceAddress {
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

pub fn room_uri(id: RoomId) -> String {
    format!("{SCHEME}rooms/{id}")
}

pub fn skill_uri(name: &SkillName) -> String {
    format!("{SCHEME}skills/{name}")
}

pub fn skill_file_uri(name: &SkillName, path: &str) -> String {
    format!("{SCHEME}skills/{name}/files/{}", utf8_percent_encode(path, RESERVED))
}

#[cfg(test)]
mod tests {
    use super::{ResourceAddress, room_uri, skill_file_uri, skill_uri};
    use domain::{ids::RoomId, skill::SkillName};

    #[test]
    fn uris_round_trip_and_invalid_ones_are_rejected() {
        let (id, name): (_, SkillName) = (RoomId::generate(), "code-review".parse().unwrap());
        assert_eq!(ResourceAddress::parse(&room_uri(id)), Some(ResourceAddress::Room(id)));
        assert_eq!(ResourceAddress::parse(&skill_uri(&name)), Some(ResourceAddress::Skill(name.clone())));
        let path = "scripts/a b%?.sh";
        let found = ResourceAddress::parse(&skill_file_uri(&name, path));
        assert_eq!(found, Some(ResourceAddress::SkillFile(name, path.parse().unwrap())));
        let files = format!("{}/files", room_uri(id));
        assert_eq!(ResourceAddress::parse(&files), Some(ResourceAddress::File(id, String::new())));
        assert_eq!(ResourceAddress::parse(&format!("{files}/a%2Fb")), Some(ResourceAddress::File(id, "a/b".into())));
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
            assert_eq!(ResourceAddress::parse(none), None, "{none}");
        }
    }
}
