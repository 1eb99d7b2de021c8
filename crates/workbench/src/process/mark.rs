//! Which server a process or a cgroup belongs to, written so that any later server can tell whether that one is dead.

use super::table::Entry;
use std::{fmt, fs, str::FromStr};

/// In the environment of everything that is started, so that what lost its keeper can be found.
pub const VARIABLE: &str = "GREENROOM_DOMAIN";

/// A server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    id: i32,
    started: u64,
    /// Process ids mean nothing outside of their namespace: a container's servers are not for us to judge.
    namespace: u64,
}

/// One kill domain of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub origin: Origin,
    unique: String,
}

impl Origin {
    /// This process. `None` without a `/proc` to look at.
    pub fn own() -> Option<Self> {
        let id = i32::try_from(std::process::id()).ok()?;
        Some(Self { id, started: Entry::read(id)?.started, namespace: namespace()? })
    }

    pub fn mark(self) -> Mark {
        Mark { origin: self, unique: uuid::Uuid::new_v4().simple().to_string() }
    }

    /// Sure to be dead, as seen from `viewer`.
    pub fn is_dead(self, viewer: Self) -> bool {
        self.namespace == viewer.namespace
            && Entry::read(self.id).is_none_or(|now| now.started != self.started || now.has_ended)
    }
}

fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { id, started, namespace } = self.origin;
        write!(f, "{id}.{started}.{namespace}.{}", self.unique)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct NotAMark;

impl FromStr for Mark {
    type Err = NotAMark;

    fn from_str(text: &str) -> Result<Self, NotAMark> {
        let parts: Vec<&str> = text.split('.').collect();
        let [id, started, namespace, unique] = parts[..] else { return Err(NotAMark) };
        let number = |text: &str| text.parse().map_err(|_| NotAMark);
        if unique.is_empty() || !unique.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(NotAMark);
        }
        let origin =
            Origin { id: id.parse().map_err(|_| NotAMark)?, started: number(started)?, namespace: number(namespace)? };
        Ok(Self { origin, unique: unique.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, NotAMark, Origin};

    #[test]
    fn a_mark_reads_itself_back() {
        let mark = Origin::own().unwrap().mark();
        assert_eq!(mark.to_string().parse(), Ok(mark));
    }

    #[test]
    fn what_is_no_mark_is_refused() {
        for text in ["", "1.2.3", "1.2.3.4.5", "x.2.3.a", "1.2.3.", "1.2.3.a/b"] {
            assert_eq!(text.parse::<Mark>(), Err(NotAMark), "{text}");
        }
    }

    #[test]
    fn only_a_server_that_is_surely_dead_is_called_dead() {
        let own = Origin::own().unwrap();
        assert!(!own.is_dead(own));
        assert!(Origin { started: own.started + 1, ..own }.is_dead(own), "its number was given again");
        assert!(Origin { id: i32::MAX, ..own }.is_dead(own));
        let elsewhere = Origin { id: i32::MAX, namespace: own.namespace + 1, ..own };
        assert!(!elsewhere.is_dead(own), "a container's");
    }
}
