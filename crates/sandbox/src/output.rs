//! Runs a command to its end with everything bounded: time, output in total, and output in memory.

use crate::{
    command::{CommandExit, CommandIo, CommandSpec},
    driver::{ProjectSandbox, SandboxError},
};
use std::{
    collections::VecDeque,
    fs::File,
    io::{self, pipe},
    os::fd::OwnedFd,
    time::Duration,
};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, time::timeout};

const BUFFER_BYTES: usize = 64 << 10;
/// After the command and its descendants have ended, only what is in the pipe is left to read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputLimits {
    pub wall: Duration,
    /// A command that prints more is killed.
    pub total_bytes: u64,
    /// Kept from the beginning of each stream.
    pub head_bytes: usize,
    /// Kept from the end of each stream.
    pub tail_bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { wall: Duration::from_secs(120), total_bytes: 64 << 20, head_bytes: 32 << 10, tail_bytes: 32 << 10 }
    }
}

/// The beginning and the end of an output, and the number of bytes between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_bytes: usize,
    tail_bytes: usize,
    total: u64,
}

impl HeadAndTail {
    pub fn new(limits: &OutputLimits) -> Self {
        let (head_bytes, tail_bytes) = (limits.head_bytes, limits.tail_bytes);
        Self { head: Vec::new(), tail: VecDeque::new(), head_bytes, tail_bytes, total: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_bytes)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_bytes);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    pub fn omitted_bytes(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), self.tail.iter().copied().collect::<Vec<_>>());
        let tail = String::from_utf8_lossy(&tail);
        match self.omitted_bytes() {
            0 => format!("{head}{tail}"),
            omitted => format!("{head}\n[{omitted} bytes omitted]\n{tail}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandEnd {
    Exited(CommandExit),
    /// Killed after [`OutputLimits::wall`].
    TimedOut,
    /// Killed after [`OutputLimits::total_bytes`].
    TooMuchOutput,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedCommand {
    pub end: CommandEnd,
    pub stdout: HeadAndTail,
    pub stderr: HeadAndTail,
}

/// Runs a command without input. Dropping the future kills the command.
pub async fn capture(
    sandbox: &dyn ProjectSandbox,
    command: CommandSpec,
    limits: OutputLimits,
) -> Result<CapturedCommand, SandboxError> {
    let (stdin, stdout, stderr) = streams().map_err(SandboxError::Helper)?;
    let io = CommandIo { stdin, stdout: stdout.1, stderr: stderr.1 };
    let mut running = sandbox.run(command, io).await?;
    let (mut stdout, mut stderr) = (OutputReader::new(stdout.0, &limits), OutputReader::new(stderr.0, &limits));
    let ended = timeout(limits.wall, async {
        tokio::select! {
            exit = running.wait() => CommandEnd::Exited(exit),
            () = read_both(&mut stdout, &mut stderr, limits.total_bytes) => CommandEnd::TooMuchOutput,
        }
    })
    .await;
    let end = ended.unwrap_or(CommandEnd::TimedOut);
    if !matches!(end, CommandEnd::Exited(_)) {
        running.kill().await?;
    }
    // With leftover processes that stay, the pipes stay open: what they print later is not part of this output.
    let rest = read_rest(&mut stdout, &mut stderr, limits.total_bytes);
    timeout(DRAIN_TIMEOUT, rest).await.ok();
    running.detach();
    Ok(CapturedCommand { end, stdout: stdout.kept, stderr: stderr.kept })
}

type OutputPipe = (Receiver, OwnedFd);

fn streams() -> io::Result<(OwnedFd, OutputPipe, OutputPipe)> {
    let output = || {
        let (reader, writer) = pipe()?;
        Ok::<OutputPipe, io::Error>((Receiver::from_owned_fd(reader.into())?, writer.into()))
    };
    Ok((File::open("/dev/null")?.into(), output()?, output()?))
}

struct OutputReader {
    pipe: Receiver,
    buffer: Vec<u8>,
    kept: HeadAndTail,
    is_open: bool,
}

impl OutputReader {
    fn new(pipe: Receiver, limits: &OutputLimits) -> Self {
        Self { pipe, buffer: vec![0; BUFFER_BYTES], kept: HeadAndTail::new(limits), is_open: true }
    }

    async fn read(&mut self) {
        match self.pipe.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.is_open = false,
            Ok(length) => self.kept.push(&self.buffer[..length]),
        }
    }
}

/// Returns when there was too much. Cancel safe.
async fn read_both(stdout: &mut OutputReader, stderr: &mut OutputReader, total: u64) {
    while stdout.kept.total + stderr.kept.total <= total {
        tokio::select! {
            () = stdout.read(), if stdout.is_open => {}
            () = stderr.read(), if stderr.is_open => {}
            else => std::future::pending().await,
        }
    }
}

async fn read_rest(stdout: &mut OutputReader, stderr: &mut OutputReader, total: u64) {
    while (stdout.is_open || stderr.is_open) && stdout.kept.total + stderr.kept.total <= total {
        tokio::select! {
            () = stdout.read(), if stdout.is_open => {}
            () = stderr.read(), if stderr.is_open => {}
            else => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HeadAndTail, OutputLimits};

    fn kept(pieces: &[&str]) -> HeadAndTail {
        let mut kept = HeadAndTail::new(&OutputLimits { head_bytes: 4, tail_bytes: 3, ..OutputLimits::default() });
        pieces.iter().for_each(|piece| kept.push(piece.as_bytes()));
        kept
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        assert_eq!(kept(&["abc"]).text(), "abc");
        assert_eq!(kept(&["abcd", "efg"]).text(), "abcdefg");
        assert_eq!(kept(&["abcdefgh"]).text(), "abcd\n[1 bytes omitted]\nfgh");
        assert_eq!(kept(&["ab", "cdef", "g", "hijkl"]).text(), "abcd\n[5 bytes omitted]\njkl");
        assert_eq!((kept(&["abcdefgh"]).total_bytes(), kept(&["abcdefgh"]).omitted_bytes()), (8, 1));
    }
}
