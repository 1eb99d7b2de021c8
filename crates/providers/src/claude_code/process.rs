//! A process of Claude Code: started in the agent's folders, stopped with proof, and its failures explained.

use super::{
    command::Fixed,
    conversation::{Broken, Conversation},
    folders,
    launch::{Launcher, Life},
    wire,
};
use crate::{pool::Resident, program::Program};
use domain::run::{Receipt, RunError};
use std::time::Duration;
use tokio::time::timeout;
use workbench::process::Ended;

/// How long a program whose output has ended may take to end itself.
const EXIT: Duration = Duration::from_secs(1);
/// How long a change of model may take. It cannot be interrupted.
const SET_MODEL: Duration = Duration::from_secs(3);
/// How much of its last words goes into a message.
const LAST_WORDS_BYTES: usize = 2048;

pub(super) struct Process {
    pub conversation: Conversation,
    life: Box<dyn Life>,
    fixed: Fixed,
    model: Option<String>,
    /// The conversation it was started with.
    resumed: Option<String>,
    /// Whether it has had a prompt.
    is_used: bool,
}

impl Process {
    pub async fn start(
        launcher: &dyn Launcher,
        program: &Program,
        fixed: Fixed,
        model: Option<&str>,
        resume: Option<&str>,
    ) -> Result<Self, RunError> {
        let (login, folders) = (folders::persons_login(program), fixed.clone());
        let made = tokio::task::spawn_blocking(move || folders::prepare(&folders, login.as_deref())).await;
        let problem = match made {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            return Err(cannot_start(&format!("the agent's folder cannot be made ready: {problem}")));
        }
        let command = fixed.command(program, model, resume);
        let child = launcher.launch(command).await.map_err(|problem| cannot_start(&problem))?;
        let conversation = Conversation::new(child.lines, child.input, fixed.system_prompt.as_deref());
        Ok(Self {
            conversation,
            life: child.life,
            fixed,
            model: model.map(str::to_owned),
            resumed: resume.map(str::to_owned),
            is_used: false,
        })
    }

    /// Whether it is what would be started now for this conversation, but for the model.
    pub fn fits(&self, fixed: &Fixed, session: Option<&str>) -> bool {
        let own = self.conversation.parser.session().or(self.resumed.as_deref());
        self.fixed == *fixed && own == session && (session.is_some() || !self.is_used)
    }

    /// Whether it does nothing at all until it is asked.
    pub fn is_at_rest(&self) -> bool {
        !self.conversation.parser.has_work_in_background()
    }

    /// Whether a conversation was resumed that has not been heard of yet.
    pub fn is_resuming(&self) -> bool {
        self.resumed.is_some() && !self.is_used
    }

    pub fn use_it(&mut self) -> &mut Conversation {
        self.is_used = true;
        &mut self.conversation
    }

    /// Makes one that was idle ready for a turn; `None` when it is of no more use.
    pub async fn wake(mut self, model: Option<&str>) -> Option<Self> {
        if self.conversation.catch_up().await.is_err() {
            self.stop().await;
            return None;
        }
        if self.model.as_deref() != model {
            let answer = self.conversation.inquire(&wire::set_model(model), SET_MODEL).await;
            if !matches!(answer, Ok(Ok(_))) {
                tracing::info!(?answer, "Claude Code does not take the new model; it is started again");
                self.stop().await;
                return None;
            }
            self.model = model.map(str::to_owned);
        }
        Some(self)
    }

    /// Ends what its tools have left running; how many processes that were.
    pub fn end_strays(&self) -> usize {
        self.life.end_strays()
    }

    /// Closes its input, and then as much force as it takes.
    pub async fn stop(self) -> Receipt {
        drop(self.conversation);
        self.life.stop().await
    }

    /// Stops it and says why it failed.
    pub async fn failed(mut self, broken: Broken) -> (RunError, Receipt) {
        let error = match broken {
            Broken::Ended(half) => {
                let ended = timeout(EXIT, self.life.ended()).await.unwrap_or(Ended::Unknown);
                let how = match ended {
                    Ended::Code(code) => format!("it exited with code {code}"),
                    Ended::Signal(signal) => format!("it was ended by signal {signal}"),
                    Ended::Unknown => "it closed its output".to_owned(),
                };
                let half = half.map(|half| format!(" Its last line was cut off: {half:?}.")).unwrap_or_default();
                let message = format!("Claude Code ended in the middle of the turn: {how}.{half}{}", self.last_words());
                RunError::new("program_crashed", message)
            }
            Broken::BadOutput(problem) => {
                let message =
                    format!("Claude Code sent something that is not its protocol: {problem}.{}", self.last_words());
                RunError::new("bad_output", message)
            }
            Broken::Silent => {
                let message = format!(
                    "Claude Code did not answer within a minute of its start. An MCP server that does not start can be \
                     the cause.{}",
                    self.last_words()
                );
                RunError::new("start_timeout", message)
            }
            Broken::Refused(reason) => cannot_start(&format!(
                "it refused the first request: {reason}. This version may be too old: update it, and see `greenroom \
                 doctor`"
            )),
        };
        (error, self.stop().await)
    }

    fn last_words(&self) -> String {
        let tail = self.life.last_words();
        let mut from = tail.len().saturating_sub(LAST_WORDS_BYTES);
        while !tail.is_char_boundary(from) {
            from += 1;
        }
        match tail[from..].trim() {
            "" => String::new(),
            words => format!(" Its last words: {words}"),
        }
    }
}

impl Resident for Process {
    async fn leave(self) {
        let receipt = self.stop().await;
        tracing::debug!(?receipt, "an idle Claude Code was ended");
    }
}

fn cannot_start(problem: &str) -> RunError {
    RunError::new("start_failed", format!("Claude Code cannot be started: {problem}"))
}
