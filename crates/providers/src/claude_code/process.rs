//! A Claude Code process: starts it in the agent's folders, stops it with a receipt, and explains its failures.

use super::{
    command::{ClaudeLaunchSettings, WIRES},
    conversation::{ClaudeConversation, ClaudeConversationError},
    folders, wire,
};
use crate::{
    gateway::{GatewayAccess, GatewayTurn, RunMeter},
    pool::PooledProcess,
    program::{AgentProgram, STOP_TIMEOUTS},
};
use domain::run::{Receipt, RunError};
use std::time::Duration;
use tokio::time::timeout;
use workbench::process::{LaunchedProcess, ProcessHandle, ProcessSet, ProgramExit};

/// How long a program may take to exit after its output has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a model change may take. It cannot be interrupted.
const SET_MODEL_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of its stderr is included in an error message.
const STDERR_BYTES: usize = 2048;

pub(super) struct ClaudeProcess {
    pub conversation: ClaudeConversation,
    handle: Box<dyn ProcessHandle>,
    settings: ClaudeLaunchSettings,
    model: Option<String>,
    /// The session that it was started with.
    resumed: Option<String>,
    /// Whether it has received a prompt.
    is_used: bool,
    /// Its token for the model gateway, if it is in a sandbox.
    access: Option<GatewayAccess>,
}

impl ClaudeProcess {
    pub async fn start(
        program: &AgentProgram,
        settings: ClaudeLaunchSettings,
        model: Option<&str>,
        resume: Option<&str>,
    ) -> Result<Self, RunError> {
        let program = &program.for_workspace(&WIRES, &settings.provider_settings);
        let access = settings.sandbox.as_ref().map(|sandbox| {
            let AgentProgram { gateway, environment, .. } = program;
            gateway.issue(&sandbox.key, &WIRES, environment, &settings.provider_settings, &settings.mcp_servers)
        });
        let access = access.transpose().map_err(|error| cannot_start(&error.to_string()))?;
        let (login, folders) = (folders::operator_login(program), settings.clone());
        let token = access.as_ref().map(|access| access.reveal().to_owned());
        let made = tokio::task::spawn_blocking(move || match (&folders.sandbox, token) {
            (Some(sandbox), Some(token)) => folders::prepare_inside(&folders, sandbox, &token),
            _ => folders::prepare(&folders, login.as_deref()),
        })
        .await;
        let problem = match made {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            return Err(cannot_start(&format!("cannot prepare the agent's folder: {problem}")));
        }
        let mut command = settings.command(program, model, resume);
        if let Some(access) = &access {
            command.env.extend(access.variables());
        }
        let launched = program.launcher.launch(command).await;
        let LaunchedProcess { stdin, stdout, handle } = launched.map_err(|error| cannot_start(&error.to_string()))?;
        let (prompt, host_tools) = (settings.system_prompt.as_deref(), settings.host_tools.clone());
        let conversation = ClaudeConversation::new(stdout, stdin, prompt, host_tools);
        Ok(Self {
            conversation,
            handle,
            settings,
            model: model.map(str::to_owned),
            resumed: resume.map(str::to_owned),
            is_used: false,
            access,
        })
    }

    /// Whether the process has these settings and this session. The model may differ.
    pub fn fits(&self, fixed: &ClaudeLaunchSettings, session: Option<&str>) -> bool {
        let own = self.conversation.parser.session().or(self.resumed.as_deref());
        self.settings == *fixed && own == session && (session.is_some() || !self.is_used)
    }

    /// Lets it call models for a run, until the returned value is dropped.
    pub fn begin_turn(&self, meter: &RunMeter) -> Option<GatewayTurn> {
        self.access.as_ref().map(|access| access.turns().begin(meter, None))
    }

    /// Whether it has no background tasks.
    pub fn is_idle(&self) -> bool {
        !self.conversation.parser.has_work_in_background()
    }

    /// Whether it was started to resume a session and has not had a prompt yet.
    pub fn is_resuming(&self) -> bool {
        self.resumed.is_some() && !self.is_used
    }

    pub fn mark_used(&mut self) -> &mut ClaudeConversation {
        self.is_used = true;
        &mut self.conversation
    }

    /// Prepares an idle process for a turn. Returns `None` if it cannot be used any more.
    pub async fn prepare_for_turn(mut self, model: Option<&str>) -> Option<Self> {
        if self.conversation.drain().await.is_err() {
            self.stop().await;
            return None;
        }
        if self.model.as_deref() != model {
            let answer = self.conversation.request_and_wait(&wire::set_model(model), SET_MODEL_TIMEOUT).await;
            if !matches!(answer, Ok(Ok(_))) {
                tracing::info!(?answer, "Claude Code did not accept the new model; restarting it");
                self.stop().await;
                return None;
            }
            self.model = model.map(str::to_owned);
        }
        Some(self)
    }

    pub fn process_id(&self) -> i32 {
        self.handle.process_id()
    }

    /// Kills the processes that its tools left running, and returns them.
    pub fn end_strays(&self) -> ProcessSet {
        self.handle.end_orphans()
    }

    /// Stops the process after an interrupt. The receipt includes what had ended by then.
    pub async fn stop_after(self, running_at_interrupt: &ProcessSet) -> Receipt {
        let ended = running_at_interrupt.ended().count();
        let mut receipt = self.stop().await;
        receipt.processes = receipt.processes.saturating_add(ended);
        receipt
    }

    /// Closes its input and waits for it to exit, by force if necessary.
    pub async fn stop(self) -> Receipt {
        drop(self.conversation);
        self.handle.stop(STOP_TIMEOUTS).await
    }

    /// Stops the process and returns why it failed.
    pub async fn into_error(mut self, broken: ClaudeConversationError) -> (RunError, Receipt) {
        let error = match broken {
            ClaudeConversationError::Ended(half) => {
                let ended = timeout(EXIT_TIMEOUT, self.handle.wait()).await.unwrap_or(ProgramExit::Unknown);
                let how = match ended {
                    ProgramExit::Code(code) => format!("it exited with code {code}"),
                    ProgramExit::Signal(signal) => format!("it was killed by signal {signal}"),
                    ProgramExit::Unknown => "it closed its output".to_owned(),
                };
                let half = half.map(|half| format!(" Its last line was cut off: {half:?}.")).unwrap_or_default();
                let message = format!("Claude Code exited during the turn: {how}.{half}{}", self.stderr_excerpt());
                RunError::new("program_crashed", message)
            }
            ClaudeConversationError::BadOutput(problem) => {
                let message = format!("Claude Code sent invalid output: {problem}.{}", self.stderr_excerpt());
                RunError::new("bad_output", message)
            }
            ClaudeConversationError::StartTimeout => {
                let message = format!(
                    "Claude Code did not answer within a minute of its start. An MCP server that does not start can be \
                     the cause.{}",
                    self.stderr_excerpt()
                );
                RunError::new("start_timeout", message)
            }
            ClaudeConversationError::StartRefused(reason) => cannot_start(&format!(
                "it rejected the first request: {reason}. This version may be too old: update it, and run `greenroom \
                 doctor`"
            )),
        };
        (error, self.stop().await)
    }

    fn stderr_excerpt(&self) -> String {
        let tail = self.handle.stderr().text();
        let mut from = tail.len().saturating_sub(STDERR_BYTES);
        while !tail.is_char_boundary(from) {
            from += 1;
        }
        match tail[from..].trim() {
            "" => String::new(),
            stderr => format!(" Last output on stderr: {stderr}"),
        }
    }
}

impl PooledProcess for ClaudeProcess {
    async fn shut_down(self) {
        let receipt = self.stop().await;
        tracing::debug!(?receipt, "stopped an idle Claude Code process");
    }
}

fn cannot_start(problem: &str) -> RunError {
    RunError::new("start_failed", format!("Claude Code could not start: {problem}"))
}
