//! Faulty CLIs, by name. Each follows its protocol until the first prompt and then shows the fault.
//!
//! `claude`, `codex` and `acp` implement just enough of a protocol for the handshake and for starting and ending an
//! answer.

mod acp;
mod claude;
mod codex;

use crate::arguments::IGNORE_SIGTERM;
use serde_json::Value;
use std::{
    io::{self, BufWriter, StdoutLock, Write},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

const LONG_LINE_BYTES: usize = 100 * 1024 * 1024;
const BURST_DELTAS: u32 = 10_000;
const ONE_HOUR: Duration = Duration::from_secs(3600);
/// A placeholder in an output line for content that is too long to build in memory.
const HOLE: &str = "HOLE";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A line that is neither JSON nor UTF-8 in the middle of a good answer.
    Garbage,
    /// The output ends in the middle of a line.
    HalfLine,
    /// A line of 100 MB.
    LongLine,
    /// No output after the prompt or anything else. Ends with its input.
    Silence,
    SilenceAtStart,
    /// Starts an answer, then sends nothing.
    Stall,
    /// Exits with code 1 and a message on stderr.
    Exit,
    ExitAtStart,
    /// Starts an answer, then ignores interrupts, the end of its input and SIGTERM.
    HangOnEof,
    /// Answers correctly, but ignores the end of its input and SIGTERM.
    HangAfterEnd,
    /// Answers with the id of a process that it leaves behind in a separate session.
    SetsidChild,
    /// 10,000 deltas in one write.
    Burst,
    /// Prints the MCP servers it got, including secrets, and keeps running when cancelled. Exits on the next prompt.
    Blab,
}

const FAULTS: &[(&str, Fault)] = &[
    ("garbage", Fault::Garbage),
    ("half-line", Fault::HalfLine),
    ("long-line", Fault::LongLine),
    ("silence", Fault::Silence),
    ("silence-at-start", Fault::SilenceAtStart),
    ("stall", Fault::Stall),
    ("exit", Fault::Exit),
    ("exit-at-start", Fault::ExitAtStart),
    ("hang-on-eof", Fault::HangOnEof),
    ("hang-after-end", Fault::HangAfterEnd),
    ("setsid-child", Fault::SetsidChild),
    ("burst", Fault::Burst),
    ("blab", Fault::Blab),
];

impl Fault {
    pub fn named(name: &str) -> Result<Self, String> {
        let found = FAULTS.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault);
        let known = || FAULTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("unknown fault {name:?}; known faults: {}", known()))
    }
}

/// The protocol of the CLI that is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CliProtocol {
    Claude,
    Codex,
    Acp,
    /// ACP, for an agent that supports only stdio MCP servers.
    AcpStdio,
}

impl CliProtocol {
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "claude" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            "acp" => Ok(Self::Acp),
            "acp-stdio" => Ok(Self::AcpStdio),
            other => Err(format!("--speaks takes claude, codex, acp or acp-stdio, not {other:?}")),
        }
    }

    /// The output of `--version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.325 (Claude Code)",
            Self::Codex => "codex-cli 0.166.0",
            Self::Acp | Self::AcpStdio => "0.61.0",
        }
    }

    fn protocol(self) -> Box<dyn FakeProtocol> {
        match self {
            Self::Claude => Box::new(claude::FakeClaude::default()),
            Self::Codex => Box::new(codex::FakeCodex::default()),
            Self::Acp => Box::new(acp::FakeAcp::new(true)),
            Self::AcpStdio => Box::new(acp::FakeAcp::new(false)),
        }
    }
}

/// A minimal protocol implementation.
trait FakeProtocol {
    fn handle_line(&mut self, line: &Value) -> LineAction;
    /// Returns the lines before the first delta of the answer.
    fn begin(&mut self) -> Vec<Value>;
    fn delta(&self, text: &str) -> Value;
    /// Returns the lines after the last delta.
    fn end(&mut self, text: &str) -> Vec<Value>;
    /// Returns the MCP servers of the session.
    fn servers(&self) -> Value {
        Value::Null
    }
}

#[derive(Debug, PartialEq)]
enum LineAction {
    Prompt,
    Reply(Vec<Value>),
    Ignore,
}

pub fn play(fault: Fault, protocol: CliProtocol, ignores_sigterm: bool) -> io::Result<ExitCode> {
    match fault {
        Fault::HangOnEof | Fault::HangAfterEnd if !ignores_sigterm => return Err(restart_ignoring_sigterm()),
        Fault::ExitAtStart => return Ok(crash()),
        Fault::SilenceAtStart => return silence(),
        _ => {}
    }
    let mut broken =
        FaultyCli { protocol: protocol.protocol(), output: BufWriter::new(io::stdout().lock()), fault: Some(fault) };
    let mut line = String::new();
    // The input is not locked, because a fault may read it too.
    while io::stdin().read_line(&mut line)? > 0 {
        let Ok(line) = serde_json::from_str(&std::mem::take(&mut line)) else { continue };
        match broken.protocol.handle_line(&line) {
            LineAction::Ignore => {}
            LineAction::Reply(lines) => broken.lines(lines)?,
            LineAction::Prompt => {
                if let Some(code) = broken.answer()? {
                    return Ok(code);
                }
            }
        }
    }
    if fault == Fault::HangAfterEnd {
        hang();
    }
    Ok(ExitCode::SUCCESS)
}

struct FaultyCli {
    protocol: Box<dyn FakeProtocol>,
    output: BufWriter<StdoutLock<'static>>,
    /// Taken by the first prompt; later prompts are answered correctly.
    fault: Option<Fault>,
}

impl FaultyCli {
    /// Returns the exit code if the fault ends the process.
    fn answer(&mut self) -> io::Result<Option<ExitCode>> {
        match self.fault.take() {
            Some(Fault::Exit) => return Ok(Some(crash())),
            Some(Fault::Silence) => return silence().map(Some),
            Some(Fault::Stall) => {
                self.begin(&["Just a moment"])?;
                return silence().map(Some);
            }
            Some(Fault::HangOnEof) => {
                self.begin(&["Just a moment"])?;
                hang();
            }
            Some(Fault::HalfLine) => {
                self.begin(&["Half a "])?;
                let line = self.protocol.delta("line").to_string();
                self.output.write_all(&line.as_bytes()[..line.len() / 2])?;
                self.output.flush()?;
                return Ok(Some(ExitCode::SUCCESS));
            }
            Some(Fault::LongLine) => {
                self.begin(&[])?;
                self.long_line()?;
                self.end("A long line.")?;
            }
            Some(Fault::Garbage) => {
                self.begin(&["Before "])?;
                self.output.write_all(b"Segmentation {fault: \xff\xfe\x00 this is not JSON\n")?;
                let after = self.protocol.delta("after.");
                self.lines(vec![after])?;
                self.end("Before after.")?;
            }
            Some(Fault::SetsidChild) => {
                let text = format!("Left process {}", spawn_orphan()?);
                self.begin(&[&text])?;
                self.end(&text)?;
            }
            Some(Fault::Burst) => {
                let words: Vec<String> = (1..=BURST_DELTAS).map(|number| format!("{number} ")).collect();
                self.begin(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
                self.end(&words.concat())?;
            }
            Some(Fault::Blab) => {
                let servers = self.protocol.servers().to_string();
                self.begin(&[&servers])?;
                let mut line = String::new();
                while io::stdin().read_line(&mut line)? > 0 && !line.contains("session/cancel") {
                    line.clear();
                }
                self.end(&servers)?;
                self.fault = Some(Fault::Exit);
            }
            None | Some(Fault::HangAfterEnd | Fault::SilenceAtStart | Fault::ExitAtStart) => {
                self.begin(&["All is ", "well."])?;
                self.end("All is well.")?;
            }
        }
        Ok(None)
    }

    fn begin(&mut self, deltas: &[&str]) -> io::Result<()> {
        let mut lines = self.protocol.begin();
        lines.extend(deltas.iter().map(|delta| self.protocol.delta(delta)));
        self.lines(lines)
    }

    fn end(&mut self, text: &str) -> io::Result<()> {
        let lines = self.protocol.end(text);
        self.lines(lines)
    }

    fn lines(&mut self, lines: Vec<Value>) -> io::Result<()> {
        for line in lines {
            writeln!(self.output, "{line}")?;
        }
        self.output.flush()
    }

    fn long_line(&mut self) -> io::Result<()> {
        let line = self.protocol.delta(HOLE).to_string();
        let (before, after) = line.split_once(HOLE).unwrap_or((&line, ""));
        let block = [b'x'; 64 * 1024];
        self.output.write_all(before.as_bytes())?;
        for _ in 0..LONG_LINE_BYTES / block.len() {
            self.output.write_all(&block)?;
        }
        writeln!(self.output, "{after}")?;
        self.output.flush()
    }
}

fn crash() -> ExitCode {
    eprintln!("fatal: out of luck (os error 13)");
    ExitCode::FAILURE
}

/// Reads and ignores the input until it ends.
fn silence() -> io::Result<ExitCode> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(ExitCode::SUCCESS)
}

/// Sleeps until the process is killed.
fn hang() -> ! {
    loop {
        thread::sleep(ONE_HOUR);
    }
}

/// Restarts through a shell that ignores SIGTERM, which stays ignored after `exec`. Returns only on failure.
fn restart_ignoring_sigterm() -> io::Error {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]);
    match std::env::current_exe() {
        Ok(own) => command.arg(own).args(std::env::args_os().skip(1)).arg(IGNORE_SIGTERM).exec(),
        Err(error) => error,
    }
}

/// Returns the id of a long-running process that shares no pipes, process group or session with us.
fn spawn_orphan() -> io::Result<String> {
    let script = "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $!";
    let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
