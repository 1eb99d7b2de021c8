//! The protocol between server and keeper, over a socket pair that only they hold.
//!
//! First the program's three pipes, then the start request, then lines. When the server's end closes, for any reason,
//! the keeper kills everything.

use super::{ProcessSpec, ProgramExit};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            net::UnixStream,
        },
    },
    path::PathBuf,
};

/// More than any system accepts as arguments and environment.
pub const MAX_START_BYTES: usize = 8 * 1024 * 1024;

/// The program's ends of its standard input, output and error.
pub struct Pipes {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
}

impl Pipes {
    /// Sends the pipes with one byte of data. That fits into an empty socket, so it does not block.
    pub fn send(&self, over: &UnixStream) -> io::Result<()> {
        let held = [self.input.as_fd(), self.output.as_fd(), self.errors.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&held)) {
            return Err(io::Error::other("three pipes do not fit into the control message"));
        }
        sendmsg(over, &[io::IoSlice::new(b"p")], &mut control, SendFlags::empty())?;
        Ok(())
    }

    pub fn receive(from: &UnixStream) -> io::Result<Self> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        // Closed on exec: the program gets the pipes as its standard streams, and no further copies.
        recvmsg(from, &mut [io::IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let mut pipes = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(pipes) => pipes.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        match (pipes.next(), pipes.next(), pipes.next()) {
            (Some(input), Some(output), Some(errors)) => Ok(Self { input, output, errors }),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server sent no pipes")),
        }
    }
}

/// The program that the keeper must start.
#[derive(Debug, PartialEq, Eq)]
pub struct StartRequest {
    /// The cgroup to create for it, if any.
    pub leaf: Option<PathBuf>,
    pub command: ProcessSpec,
}

impl StartRequest {
    /// Returns an error if no system could start this.
    pub fn encode(&self) -> Result<Vec<u8>, &'static str> {
        let ProcessSpec { program, args, env, folder, sandbox: _ } = &self.command;
        if env.keys().any(|name| name.is_empty() || name.as_bytes().contains(&b'=')) {
            return Err("its environment has a variable with an invalid name");
        }
        let count = args.len().to_string();
        let leaf = self.leaf.as_ref().map_or(OsStr::new(""), |leaf| leaf.as_os_str());
        let head = [leaf, folder.as_os_str(), program.as_os_str(), OsStr::new(&count)];
        let rest = args.iter().chain(env.iter().flat_map(|(name, value)| [name, value])).map(OsString::as_os_str);
        let mut bytes = Vec::new();
        for field in head.into_iter().chain(rest) {
            if field.as_bytes().contains(&0) {
                return Err("its arguments or environment contain a NUL byte");
            }
            bytes.extend_from_slice(field.as_bytes());
            bytes.push(0);
        }
        if bytes.len() > MAX_START_BYTES {
            return Err("its arguments and environment are too long");
        }
        Ok(bytes)
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields =
            bytes.strip_suffix(&[0])?.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.into()));
        let (leaf, folder, program) = (fields.next()?, fields.next()?, fields.next()?);
        let count: usize = fields.next()?.to_str()?.parse().ok()?;
        let args: Vec<OsString> = fields.by_ref().take(count).collect();
        (args.len() == count).then_some(())?;
        let mut env = std::collections::BTreeMap::new();
        while let Some(name) = fields.next() {
            env.insert(name, fields.next()?);
        }
        let leaf = (!leaf.is_empty()).then(|| leaf.into());
        let (program, folder) = (program.into(), folder.into());
        Some(Self { leaf, command: ProcessSpec { program, args, env, folder, sandbox: None } })
    }
}

/// Sent by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperCommand {
    /// A stop has begun: count the processes.
    Count,
    Terminate,
    Kill,
}

impl KeeperCommand {
    const ALL: [Self; 3] = [Self::Count, Self::Terminate, Self::Kill];

    pub const fn line(self) -> &'static str {
        match self {
            Self::Count => "count\n",
            Self::Terminate => "term\n",
            Self::Kill => "kill\n",
        }
    }

    pub fn parse(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.line().trim_end() == line)
    }
}

/// Sent by the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperReport {
    Started {
        program: i32,
    },
    /// The OS error number, and what failed.
    Failed {
        error: i32,
        what: String,
    },
    Ended(ProgramExit),
    /// The domain is empty, or could not be emptied in time.
    CleanedUp(CleanupOutcome),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanupOutcome {
    /// How many processes ended, including the program itself.
    pub processes: u32,
    /// Whether any process had to be killed.
    pub killed: bool,
    /// How many could not be killed: they hang in the kernel, or belong to another user.
    pub remaining: u32,
}

impl fmt::Display for KeeperReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { program } => writeln!(f, "started {program}"),
            Self::Failed { error, what } => writeln!(f, "failed {error} {}", what.replace('\n', " ")),
            Self::Ended(ProgramExit::Code(code)) => writeln!(f, "ended code {code}"),
            Self::Ended(ProgramExit::Signal(signal)) => writeln!(f, "ended signal {signal}"),
            Self::Ended(ProgramExit::Unknown) => writeln!(f, "ended unknown 0"),
            Self::CleanedUp(CleanupOutcome { processes, killed, remaining: left }) => {
                writeln!(f, "gone {processes} {} {left}", u8::from(*killed))
            }
        }
    }
}

impl KeeperReport {
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ');
        match word {
            "started" => Some(Self::Started { program: rest.parse().ok()? }),
            "failed" => {
                let (error, what) = rest.split_once(' ')?;
                Some(Self::Failed { error: error.parse().ok()?, what: what.to_owned() })
            }
            "ended" => Some(Self::Ended(match (numbers.next()?, numbers.next()?.parse().ok()?) {
                ("code", code) => ProgramExit::Code(code),
                ("signal", signal) => ProgramExit::Signal(signal),
                _ => ProgramExit::Unknown,
            })),
            "gone" => Some(Self::CleanedUp(CleanupOutcome {
                processes: numbers.next()?.parse().ok()?,
                killed: numbers.next()? == "1",
                remaining: numbers.next()?.parse().ok()?,
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CleanupOutcome, KeeperCommand, KeeperReport, Pipes, StartRequest};
    use crate::process::{ProcessSpec, ProgramExit};
    use std::{
        ffi::OsString,
        io::{Read as _, Write as _, pipe},
        os::unix::{ffi::OsStringExt as _, net::UnixStream},
    };

    fn command(args: &[&str], env: &[(&str, &str)]) -> ProcessSpec {
        ProcessSpec {
            program: "/bin/sh".into(),
            args: args.iter().map(OsString::from).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            folder: "/".into(),
            sandbox: None,
        }
    }

    #[test]
    fn a_start_request_round_trips() {
        let mut odd = command(&["-c", "", "a b\n\"c\"", "--"], &[("A", ""), ("B", "x=y"), ("C", "\n")]);
        odd.args.push(OsString::from_vec(vec![0xff, b'=']));
        for leaf in [None, Some("/sys/fs/cgroup/x".into())] {
            for command in [odd.clone(), command(&[], &[])] {
                let start = StartRequest { leaf: leaf.clone(), command };
                assert_eq!(StartRequest::decode(&start.encode().unwrap()), Some(start));
            }
        }
    }

    #[test]
    fn unstartable_requests_are_rejected() {
        for command in [command(&["a\0b"], &[]), command(&[], &[("A=B", "")]), command(&[], &[("", "x")])] {
            assert!(StartRequest { leaf: None, command }.encode().is_err());
        }
        assert!(StartRequest { leaf: None, command: command(&[&"x".repeat(9 << 20)], &[]) }.encode().is_err());
    }

    #[test]
    fn malformed_start_requests_are_rejected() {
        for bytes in [&b""[..], b"\0", b"a\0b\0c\0", b"\0b\0c\0x\0", b"\0b\0c\x002\0one\0", b"\0b\0c\x000\0name\0"] {
            assert_eq!(StartRequest::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn commands_and_reports_round_trip() {
        for command in KeeperCommand::ALL {
            assert_eq!(KeeperCommand::parse(command.line().trim_end()), Some(command));
        }
        assert_eq!(KeeperCommand::parse("killall"), None);
        let reports = [
            KeeperReport::Started { program: 77 },
            KeeperReport::Failed { error: 2, what: "cannot start it".into() },
            KeeperReport::Ended(ProgramExit::Code(3)),
            KeeperReport::Ended(ProgramExit::Signal(9)),
            KeeperReport::Ended(ProgramExit::Unknown),
            KeeperReport::CleanedUp(CleanupOutcome { processes: 4, killed: true, remaining: 1 }),
        ];
        for report in reports {
            assert_eq!(KeeperReport::parse(report.to_string().trim_end()), Some(report));
        }
        for line in ["", "gone", "gone 1", "gone x 1 0", "ended code", "started -", "thanks 1"] {
            assert_eq!(KeeperReport::parse(line), None, "{line}");
        }
    }

    #[test]
    fn pipes_arrive_in_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, output, errors) = (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
        Pipes { input: input.0.into(), output: output.1.into(), errors: errors.1.into() }.send(&ours).unwrap();
        let arrived = Pipes::receive(&theirs).unwrap();
        let mut to_input = input.1;
        to_input.write_all(b"in").unwrap();
        drop(to_input);
        std::fs::File::from(arrived.output).write_all(b"out").unwrap();
        std::fs::File::from(arrived.errors).write_all(b"err").unwrap();
        for (mut end, expected) in [
            (arrived.input.into(), "in"),
            (std::fs::File::from(std::os::fd::OwnedFd::from(output.0)), "out"),
            (std::os::fd::OwnedFd::from(errors.0).into(), "err"),
        ] {
            let mut text = String::new();
            end.read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn receiving_pipes_from_a_closed_socket_fails() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(Pipes::receive(&theirs).is_err());
    }
}
