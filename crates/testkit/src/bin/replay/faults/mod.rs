//! Broken CLIs, by name. Each behaves until the first prompt, in the protocol it speaks, and then does what its name says.
//!
//! `claude`, `codex` and `acp` know just enough of a protocol to greet, to begin an answer and to end one.

mod acp;
mod claude;
mod codex;

use crate::arguments::DEAF;
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
const FOR_EVER: Duration = Duration::from_secs(3600);
/// Stands in an output line for what is too long to build.
const HOLE: &str = "HOLE";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A line that is no JSON and no UTF-8 in the middle of a good answer.
    Garbage,
    /// The output ends in the middle of a line.
    HalfLine,
    /// A line of 100 MB.
    LongLine,
    /// Not a word after the prompt, nor on anything else. Ends with its input.
    Silence,
    SilenceAtStart,
    /// Begins to answer, then silence.
    Stall,
    /// Exit code 1 and a word on stderr.
    Exit,
    ExitAtStart,
    /// Begins to answer, then hears neither an interrupt nor the end of its input nor SIGTERM.
    HangOnEof,
    /// Answers well, but stays when its input ends, and on SIGTERM.
    HangAfterEnd,
    /// Answers with the id of a process that it left behind in a session of its own.
    SetsidChild,
    /// 10,000 deltas in one write.
    Burst,
    /// Tells the MCP servers that it was given, secrets and all, and goes on when it is told to stop. The next prompt is its
    /// end.
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
        found.ok_or_else(|| format!("there is no fault {name:?}; there are {}", known()))
    }
}

/// Whose protocol is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaks {
    Claude,
    Codex,
    Acp,
    /// The same, of an agent that takes no MCP servers but those that it starts itself.
    AcpStdio,
}

impl Speaks {
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "claude" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            "acp" => Ok(Self::Acp),
            "acp-stdio" => Ok(Self::AcpStdio),
            other => Err(format!("--speaks takes claude, codex, acp or acp-stdio, not {other:?}")),
        }
    }

    /// As the CLI answers `--version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.325 (Claude Code)",
            Self::Codex => "codex-cli 0.166.0",
            Self::Acp | Self::AcpStdio => "0.61.0",
        }
    }

    fn protocol(self) -> Box<dyn Protocol> {
        match self {
            Self::Claude => Box::new(claude::Claude::default()),
            Self::Codex => Box::new(codex::Codex::default()),
            Self::Acp => Box::new(acp::Acp::new(true)),
            Self::AcpStdio => Box::new(acp::Acp::new(false)),
        }
    }
}

/// Just enough of one.
trait Protocol {
    fn hear(&mut self, line: &Value) -> Heard;
    /// The lines before the first delta of the answer to the last prompt.
    fn begin(&mut self) -> Vec<Value>;
    fn delta(&self, text: &str) -> Value;
    /// The lines after its last delta.
    fn end(&mut self, text: &str) -> Vec<Value>;
    /// The MCP servers that it was given.
    fn servers(&self) -> Value {
        Value::Null
    }
}

#[derive(Debug, PartialEq)]
enum Heard {
    Prompt,
    Answer(Vec<Value>),
    Nothing,
}

pub fn play(fault: Fault, speaks: Speaks, is_deaf: bool) -> io::Result<ExitCode> {
    match fault {
        Fault::HangOnEof | Fault::HangAfterEnd if !is_deaf => return Err(become_deaf()),
        Fault::ExitAtStart => return Ok(crash()),
        Fault::SilenceAtStart => return silence(),
        _ => {}
    }
    let mut broken =
        Broken { protocol: speaks.protocol(), output: BufWriter::new(io::stdout().lock()), fault: Some(fault) };
    let mut line = String::new();
    // The input is not locked meanwhile: a fault may go on reading it.
    while io::stdin().read_line(&mut line)? > 0 {
        let Ok(line) = serde_json::from_str(&std::mem::take(&mut line)) else { continue };
        match broken.protocol.hear(&line) {
            Heard::Nothing => {}
            Heard::Answer(lines) => broken.lines(lines)?,
            Heard::Prompt => {
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

struct Broken {
    protocol: Box<dyn Protocol>,
    output: BufWriter<StdoutLock<'static>>,
    /// Taken by the first prompt; all later ones are answered well.
    fault: Option<Fault>,
}

impl Broken {
    /// The exit code where the fault was the end.
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
                self.output.write_all(b"Segmentation {fault: \xff\xfe\x00 this is no JSON\n")?;
                let after = self.protocol.delta("after.");
                self.lines(vec![after])?;
                self.end("Before after.")?;
            }
            Some(Fault::SetsidChild) => {
                let text = format!("Left process {}", leave_a_process()?);
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

/// Until the host gives up.
fn silence() -> io::Result<ExitCode> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(ExitCode::SUCCESS)
}

/// Until it is killed.
fn hang() -> ! {
    loop {
        thread::sleep(FOR_EVER);
    }
}

/// A signal that a shell ignores stays ignored in what it becomes. Returns only when that failed.
fn become_deaf() -> io::Error {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]);
    match std::env::current_exe() {
        Ok(own) => command.arg(own).args(std::env::args_os().skip(1)).arg(DEAF).exec(),
        Err(error) => error,
    }
}

/// Its id. It holds none of our pipes, belongs to no group or session of ours, and would run for minutes.
fn leave_a_process() -> io::Result<String> {
    let script = "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $!";
    let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
