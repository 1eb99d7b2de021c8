//! The messages between the server and the helper, on a socket that keeps their bounds. Some carry file descriptors.

use crate::{
    command::{CommandExit, CommandSpec, CommandUsage},
    isolation::IsolationTier,
    policy::SandboxPolicy,
    sys::socket,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{BorrowedFd, OwnedFd},
    path::PathBuf,
};

/// What a command or a policy may take, encoded.
const MAX_BODY_BYTES: u64 = 4 << 20;

/// The first message to a helper. Two file descriptors: [`HelperStart`] as a body, and the lifeline.
#[derive(Serialize, Deserialize, Debug)]
pub struct StartHelper;

#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct HelperStart {
    pub tier: IsolationTier,
    pub policy: SandboxPolicy,
    pub user_namespace: bool,
    /// The user that commands run as, if the server is root.
    pub host_user: Option<u32>,
    /// The cgroup that the sandbox enters.
    pub cgroup: Option<PathBuf>,
}

#[derive(Serialize, Deserialize, Debug)]
pub enum BrokerRequest {
    /// Four file descriptors: a [`CommandSpec`] as a body, stdin, stdout and stderr.
    Run {
        id: u64,
    },
    /// To the command and what is still in its process group.
    Signal {
        command: u64,
        signal: i32,
    },
    /// Kills the command and all its descendants.
    Kill {
        command: u64,
    },
    Listen {
        id: u64,
        port: u16,
    },
    Connect {
        id: u64,
        port: u16,
        ipv6: bool,
    },
    List {
        id: u64,
    },
}

#[derive(Serialize, Deserialize, Debug)]
pub enum HelperReport {
    Ready(HelperFacts),
    SetupFailed(SetupFailure),
    /// One file descriptor, which refers to the command's process, unless that has already ended.
    Started {
        id: u64,
    },
    NotStarted {
        id: u64,
        errno: i32,
        what: String,
    },
    Exited {
        command: u64,
        exit: CommandExit,
    },
    /// The command has no processes any more.
    Gone {
        command: u64,
    },
    /// One file descriptor.
    Socket {
        id: u64,
    },
    NoSocket {
        id: u64,
        errno: i32,
    },
    Listing {
        id: u64,
        commands: Vec<CommandUsage>,
    },
}

/// What the finished set-up has.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct HelperFacts {
    pub landlock_abi: u32,
    pub has_cgroup: bool,
    pub has_user_namespace: bool,
    /// Commands run as a user of their own, not as the server's.
    pub has_own_user: bool,
    pub has_root: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct SetupFailure {
    pub step: SetupStep,
    pub what: String,
    pub errno: i32,
}

impl fmt::Display for SetupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, io::Error::from_raw_os_error(self.errno))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum SetupStep {
    Cgroup,
    Namespaces,
    Folders,
    IdMap,
    Mounts,
    Proc,
    Loopback,
    Identity,
    Limits,
    Landlock,
    Seccomp,
    Broker,
}

pub fn send(socket: BorrowedFd<'_>, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    socket::send(socket, &serde_json::to_vec(message)?, descriptors)
}

/// `None` at the end of the connection.
pub fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let (bytes, descriptors) = socket::receive(socket)?;
    match bytes.is_empty() {
        true => Ok(None),
        false => Ok(Some((serde_json::from_slice(&bytes)?, descriptors))),
    }
}

/// A message that may be larger than a socket takes at once, as a file in memory.
pub fn to_body(value: &impl Serialize) -> io::Result<OwnedFd> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let bytes = serde_json::to_vec(value)?;
    if bytes.len() as u64 > MAX_BODY_BYTES {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let body = memfd_create(c"greenroom-sandbox", MFdFlags::MFD_CLOEXEC)?;
    let mut file = File::from(body);
    file.write_all(&bytes)?;
    Ok(file.into())
}

pub fn from_body<T: DeserializeOwned>(body: OwnedFd) -> io::Result<T> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = File::from(body);
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    (&mut file).take(MAX_BODY_BYTES).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The two ends of a control socket.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// The file descriptors of a `Run` request.
pub struct RunDescriptors {
    pub command: CommandSpec,
    pub stdio: [OwnedFd; 3],
}

impl RunDescriptors {
    pub fn take(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let [body, stdin, stdout, stderr] = <[OwnedFd; 4]>::try_from(descriptors)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a command needs four file descriptors"))?;
        Ok(Self { command: from_body(body)?, stdio: [stdin, stdout, stderr] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn messages_arrive_whole_with_their_file_descriptors() {
        let (ours, theirs) = socket_pair().unwrap();
        let body = to_body(&CommandSpec::new(["echo", "ü"])).unwrap();
        send(ours.as_fd(), &BrokerRequest::Run { id: 7 }, &[body.as_fd()]).unwrap();
        send(ours.as_fd(), &BrokerRequest::Kill { command: 7 }, &[]).unwrap();
        let (first, mut descriptors) = receive::<BrokerRequest>(theirs.as_fd()).unwrap().unwrap();
        assert!(matches!(first, BrokerRequest::Run { id: 7 }));
        let command: CommandSpec = from_body(descriptors.pop().unwrap()).unwrap();
        assert_eq!((command.argv, descriptors.len()), (vec!["echo".to_owned(), "ü".to_owned()], 0));
        assert!(matches!(
            receive::<BrokerRequest>(theirs.as_fd()).unwrap().unwrap().0,
            BrokerRequest::Kill { command: 7 }
        ));
        drop(ours);
        assert!(receive::<BrokerRequest>(theirs.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_command_that_is_too_large_is_refused() {
        let command = CommandSpec::new(["x".repeat(5 << 20)]);
        assert_eq!(to_body(&command).unwrap_err().raw_os_error(), Some(libc::E2BIG));
    }
}
