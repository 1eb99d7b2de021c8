//! Steps: programs that xtask runs to their end, with their output in a log and a word about them on the progress line.
//!
//! Must not know what the programs are for. Start at [`Steps::run`]; `output.rs` reads a program's lines, `log.rs`
//! keeps them.

mod log;
mod output;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::progress::cargo_output::{self, CargoOutput};
use crate::progress::{Activity, ProgressLine, TextOutput, minutes};
use crate::repository::{Repository, XtaskResult, spell};
use log::LogFile;

/// A clean release build on a slow machine takes half of this.
const LIMIT: Duration = Duration::from_secs(90 * 60);
/// How much of a failed program's output is shown.
const LAST_LINES: usize = 60;

/// Each set of steps has a log of its own; all of one command share the progress line.
pub struct Steps {
    progress: Arc<ProgressLine>,
    root: PathBuf,
    log: LogFile,
    stop: Option<Arc<AtomicBool>>,
}

impl Steps {
    /// The log is `target/xtask/<name>.log`.
    pub fn open(repository: &Repository, name: &str, output: TextOutput) -> XtaskResult<Self> {
        Self::with(repository, name, ProgressLine::start(output))
    }

    /// Plain lines only, and a running program is ended once `stop` is true.
    pub fn open_plain(
        repository: &Repository,
        name: &str,
        output: TextOutput,
        stop: Arc<AtomicBool>,
    ) -> XtaskResult<Self> {
        let steps = Self::with(repository, name, ProgressLine::start_plain(output))?;
        Ok(Self { stop: Some(stop), ..steps })
    }

    fn with(repository: &Repository, name: &str, progress: ProgressLine) -> XtaskResult<Self> {
        let folder = repository.logs();
        let log = LogFile::create(&folder, name, repository.root())?;
        Ok(Self { progress: Arc::new(progress), root: repository.root().to_owned(), log, stop: None })
    }

    /// The same progress line with another log beside the first.
    pub fn branch(&self, name: &str) -> XtaskResult<Self> {
        let log = self.log.beside(name, &self.root)?;
        Ok(Self { progress: Arc::clone(&self.progress), root: self.root.clone(), log, stop: self.stop.clone() })
    }

    pub fn log_name(&self) -> &str {
        self.log.name()
    }

    pub fn log(&self, text: &str) {
        self.log.line(text);
    }

    /// Prints text and logs it.
    pub fn say(&self, text: &str) {
        self.log.line(text);
        self.progress.say(text);
    }

    /// Prints text that is in the log already.
    pub fn show(&self, text: &str) {
        self.progress.say(text);
    }

    pub fn begin(&self, label: &str) -> Activity {
        self.progress.begin(label)
    }

    /// Runs a program that has to succeed. When it fails, the end of its output is shown.
    pub fn run(&self, label: &str, command: &mut Command) -> XtaskResult<()> {
        let activity = self.begin(label);
        let mut last = VecDeque::new();
        let status = self.follow(command, LIMIT, &mut |line| {
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line.to_owned());
        })?;
        if !status.success() {
            drop(activity);
            self.show(&Vec::from(last).join("\n"));
            return Err(self.failed(command, status));
        }
        self.done(label, activity);
        Ok(())
    }

    /// Runs a cargo build. Its warnings and errors are shown as they come.
    pub fn build(&self, label: &str, command: &mut Command) -> XtaskResult<()> {
        let activity = self.begin(label);
        let status = self.follow_cargo(command, LIMIT, &mut |line| {
            let output = cargo_output::read(line);
            if let Some(detail) = cargo_output::detail(&output) {
                activity.detail(detail);
            }
            if output == CargoOutput::Diagnostic {
                self.show(line);
            }
        })?;
        if !status.success() {
            return Err(self.failed(command, status));
        }
        self.done(label, activity);
        Ok(())
    }

    /// Ends an activity and says how long it took.
    fn done(&self, label: &str, activity: Activity) {
        let took = activity.elapsed();
        drop(activity);
        self.say(&format!("{label}: done in {}", minutes(took)));
    }

    /// Cargo as above, for callers that read its lines, and those of the programs it runs, themselves.
    pub fn follow_cargo(
        &self,
        command: &mut Command,
        limit: Duration,
        on_line: &mut dyn FnMut(&str),
    ) -> XtaskResult<ExitStatus> {
        command.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "100");
        command.env("CARGO_TERM_COLOR", "never");
        self.follow(command, limit, on_line)
    }

    /// Logs every line of the program's output except cargo's bars, and hands over all of them.
    pub fn follow(
        &self,
        command: &mut Command,
        limit: Duration,
        on_line: &mut dyn FnMut(&str),
    ) -> XtaskResult<ExitStatus> {
        self.log.line(&format!("$ {}", spell(command)));
        let result = output::follow(command, limit, self.stop.as_deref(), &mut |line| {
            if !matches!(cargo_output::read(line), CargoOutput::Bar { .. }) {
                self.log.line(line);
            }
            on_line(line);
        });
        match &result {
            Ok(status) => self.log.line(&format!("$ ended with {status}")),
            Err(message) => self.log.line(&format!("$ {message}")),
        }
        result
    }

    fn failed(&self, command: &Command, status: ExitStatus) -> String {
        format!("`{}` ended with {status}; the log is {}", spell(command), self.log_name())
    }
}
