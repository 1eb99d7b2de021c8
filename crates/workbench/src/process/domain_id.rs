//! Kill domain ids. An id names the server that owns a process or cgroup, so that a later server can tell whether that
//! server is dead.

use super::process_table::ProcessEntry;
use std::{fmt, fs, str::FromStr};

/// Set in the environment of every started program, so that processes without a keeper can be found.
pub const DOMAIN_VARIABLE: &str = "GREENROOM_DOMAIN";

/// A server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerInstance {
    id: i32,
    started: u64,
    /// Process ids are valid in one namespace only: the state of a server in another container cannot be known.
    namespace: u64,
}

/// One kill domain of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillDomainId {
    pub server: ServerInstance,
    unique: String,
}

impl ServerInstance {
    /// Returns this process, or `None` without a readable `/proc`.
    pub fn current() -> Option<Self> {
        let id = i32::try_from(std::process::id()).ok()?;
        Some(Self { id, started: ProcessEntry::read(id)?.started, namespace: namespace()? })
    }

    pub fn new_domain(self) -> KillDomainId {
        KillDomainId { server: self, unique: uuid::Uuid::new_v4().simple().to_string() }
    }

    /// Returns whether the server is certainly dead, as seen from `viewer`.
    pub fn is_dead(self, viewer: Self) -> bool {
        self.namespace == viewer.namespace
            && ProcessEntry::read(self.id).is_none_or(|now| now.started != self.started || now.has_ended)
    }
}

fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

impl fmt::Display for KillDomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerInstance { id, started, namespace } = self.server;
        write!(f, "{id}.{started}.{namespace}.{}", self.unique)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct InvalidDomainId;

impl FromStr for KillDomainId {
    type Err = InvalidDomainId;

    fn from_str(text: &str) -> Result<Self, InvalidDomainId> {
        let parts: Vec<&str> = text.split('.').collect();
        let [id, started, namespace, unique] = parts[..] else { return Err(InvalidDomainId) };
        let number = |text: &str| text.parse().map_err(|_| InvalidDomainId);
        if unique.is_empty() || !unique.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(InvalidDomainId);
        }
        let origin = ServerInstance {
            id: id.parse().map_err(|_| InvalidDomainId)?,
            started: number(started)?,
            namespace: number(namespace)?,
        };
        Ok(Self { server: origin, unique: unique.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidDomainId, KillDomainId, ServerInstance};

    #[test]
    fn an_id_round_trips_through_text() {
        let domain = ServerInstance::current().unwrap().new_domain();
        assert_eq!(domain.to_string().parse(), Ok(domain));
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in ["", "1.2.3", "1.2.3.4.5", "x.2.3.a", "1.2.3.", "1.2.3.a/b"] {
            assert_eq!(text.parse::<KillDomainId>(), Err(InvalidDomainId), "{text}");
        }
    }

    #[test]
    fn only_a_certainly_dead_server_counts_as_dead() {
        let own = ServerInstance::current().unwrap();
        assert!(!own.is_dead(own));
        assert!(ServerInstance { started: own.started + 1, ..own }.is_dead(own), "its process id was reused");
        assert!(ServerInstance { id: i32::MAX, ..own }.is_dead(own));
        let elsewhere = ServerInstance { id: i32::MAX, namespace: own.namespace + 1, ..own };
        assert!(!elsewhere.is_dead(own), "it is in another namespace");
    }
}
