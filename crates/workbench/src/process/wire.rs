//! What server and keeper say to each other, over a socket pair that only the two of them hold.
//!
//! First the program's three pipes, then what to start; from then on lines. The end of the server's side of it, by
//! whatever cause, is the order to kill everything.

use super::{Command, Ended};
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

/// More than any system takes as arguments and environment.
pub const MAX_START_BYTES: usize = 8 * 1024 * 1024;

/// The program's ends of its standard input, output and error.
pub struct Pipes {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
}

impl Pipes {
    /// One byte, and the pipes with it. Fits into an empty socket, so it does not wait.
    pub fn send(&self, over: &UnixStream) -> io::Result<()> {
        let held = [self.input.as_fd(), self.output.as_fd(), self.errors.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&held)) {
            return Err(io::Error::other("no room for three pipes"));
        }
        sendmsg(over, &[io::IoSlice::new(b"p")], &mut control, SendFlags::empty())?;
        Ok(())
    }

    pub fn receive(from: &UnixStream) -> io::Result<Self> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        // Closed on exec: the program gets them as its standard ones, and no further copies.
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

/// What the keeper is to start.
#[derive(Debug, PartialEq, Eq)]
pub struct Start {
    /// The cgroup to make for it, if any.
    pub leaf: Option<PathBuf>,
    pub command: Command,
}

impl Start {
    /// `Err` says what in it no system can start.
    pub fn encode(&self) -> Result<Vec<u8>, &'static str> {
        let Command { program, args, env, folder } = &self.command;
        if env.keys().any(|name| name.is_empty() || name.as_bytes().contains(&b'=')) {
            return Err("a variable of its environment has no proper name");
        }
        let count = args.len().to_string();
        let leaf = self.leaf.as_ref().map_or(OsStr::new(""), |leaf| leaf.as_os_str());
        let head = [leaf, folder.as_os_str(), program.as_os_str(), OsStr::new(&count)];
        let rest = args.iter().chain(env.iter().flat_map(|(name, value)| [name, value])).map(OsString::as_os_str);
        let mut bytes = Vec::new();
        for field in head.into_iter().chain(rest) {
            if field.as_bytes().contains(&0) {
                return Err("there is a NUL in its arguments or its environment");
            }
            bytes.extend_from_slice(field.as_bytes());
            bytes.push(0);
        }
        if bytes.len() > MAX_START_BYTES {
            return Err("its arguments and its environment are too long");
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
        Some(Self { leaf, command: Command { program: program.into(), args, env, folder: folder.into() } })
    }
}

/// From the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A stop has begun: count who is there.
    Count,
    Terminate,
    Kill,
}

impl Order {
    const ALL: [Self; 3] = [Self::Count, Self::Terminate, Self::Kill];

    pub const fn line(self) -> &'static str {
        match self {
            Self::Count => "count\n",
            Self::Terminate => "term\n",
            Self::Kill => "kill\n",
        }
    }

    pub fn parse(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.line().trim_end() == line)
    }
}

/// From the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Started {
        program: i32,
    },
    /// The system's number for why not, and what could not be done.
    Failed {
        error: i32,
        what: String,
    },
    Ended(Ended),
    /// Nothing of the domain is left.
    Gone(Gone),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// How many processes ended, the program itself among them.
    pub processes: u32,
    /// Whether any had to be killed.
    pub killed: bool,
    /// How many would not even be killed: they hang in the kernel, or belong to another user.
    pub left: u32,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { program } => writeln!(f, "started {program}"),
            Self::Failed { error, what } => writeln!(f, "failed {error} {}", what.replace('\n', " ")),
            Self::Ended(Ended::Code(code)) => writeln!(f, "ended code {code}"),
            Self::Ended(Ended::Signal(signal)) => writeln!(f, "ended signal {signal}"),
            Self::Ended(Ended::Unknown) => writeln!(f, "ended unknown 0"),
            Self::Gone(Gone { processes, killed, left }) => {
                writeln!(f, "gone {processes} {} {left}", u8::from(*killed))
            }
        }
    }
}

impl Report {
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
                ("code", code) => Ended::Code(code),
                ("signal", signal) => Ended::Signal(signal),
                _ => Ended::Unknown,
            })),
            "gone" => Some(Self::Gone(Gone {
                processes: numbers.next()?.parse().ok()?,
                killed: numbers.next()? == "1",
                left: numbers.next()?.parse().ok()?,
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gone, Order, Pipes, Report, Start};
    use crate::process::{Command, Ended};
    use std::{
        ffi::OsString,
        io::{Read as _, Write as _, pipe},
        os::unix::{ffi::OsStringExt as _, net::UnixStream},
    };

    fn command(args: &[&str], env: &[(&str, &str)]) -> Command {
        Command {
            program: "/bin/sh".into(),
            args: args.iter().map(OsString::from).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            folder: "/".into(),
        }
    }

    #[test]
    fn what_to_start_arrives_as_it_was_given() {
        let mut odd = command(&["-c", "", "a b\n\"c\"", "--"], &[("A", ""), ("B", "x=y"), ("C", "\n")]);
        odd.args.push(OsString::from_vec(vec![0xff, b'=']));
        for leaf in [None, Some("/sys/fs/cgroup/x".into())] {
            for command in [odd.clone(), command(&[], &[])] {
                let start = Start { leaf: leaf.clone(), command };
                assert_eq!(Start::decode(&start.encode().unwrap()), Some(start));
            }
        }
    }

    #[test]
    fn what_no_system_can_start_is_refused() {
        for command in [command(&["a\0b"], &[]), command(&[], &[("A=B", "")]), command(&[], &[("", "x")])] {
            assert!(Start { leaf: None, command }.encode().is_err());
        }
        assert!(Start { leaf: None, command: command(&[&"x".repeat(9 << 20)], &[]) }.encode().is_err());
    }

    #[test]
    fn garbage_starts_nothing() {
        for bytes in [&b""[..], b"\0", b"a\0b\0c\0", b"\0b\0c\0x\0", b"\0b\0c\x002\0one\0", b"\0b\0c\x000\0name\0"] {
            assert_eq!(Start::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn lines_read_themselves_back() {
        for order in Order::ALL {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        assert_eq!(Order::parse("killall"), None);
        let reports = [
            Report::Started { program: 77 },
            Report::Failed { error: 2, what: "cannot start it".into() },
            Report::Ended(Ended::Code(3)),
            Report::Ended(Ended::Signal(9)),
            Report::Ended(Ended::Unknown),
            Report::Gone(Gone { processes: 4, killed: true, left: 1 }),
        ];
        for report in reports {
            assert_eq!(Report::parse(report.to_string().trim_end()), Some(report));
        }
        for line in ["", "gone", "gone 1", "gone x 1 0", "ended code", "started -", "thanks 1"] {
            assert_eq!(Report::parse(line), None, "{line}");
        }
    }

    #[test]
    fn pipes_go_over_in_order() {
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
    fn a_server_that_is_gone_sends_no_pipes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(Pipes::receive(&theirs).is_err());
    }
}
