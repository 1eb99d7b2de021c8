//! `execute_command`, `check_command` and `stop_command`.

use super::{ProjectToolbox, ToolResult, changing, exact_text, flag, number, reading};
use crate::{
    host_tools::{HostCall, HostToolDefinition, HostToolOutcome},
    truncate::truncate_middle,
};
use domain::{
    ids::CommandId,
    project_command::{CommandState, CommandStatus},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use workbench::project_commands::{CommandRequest, CommandStep, ProjectCommand};

const DEFAULT_SECONDS: u64 = 120;
const MAX_SECONDS: u64 = 1800;
/// How long a command in the background is watched before its id is returned: long enough to see it fail at once.
const BACKGROUND_WATCH: Duration = Duration::from_secs(2);
const MAX_WAIT_SECONDS: u64 = 50;
/// Output of one result, for the model.
const MAX_RESULT_BYTES: usize = 30_000;
/// Output of one call that is shown in the room while the command runs.
const MAX_SHOWN_BYTES: usize = 64 << 10;

pub fn execute_definition() -> HostToolDefinition {
    let properties = json!({
        "command": {"type": "string", "description": "A line for bash. It starts in the folder of the project, /workspace."},
        "timeout_seconds": {
            "type": "integer", "minimum": 1, "maximum": MAX_SECONDS,
            "description": "When the command is killed. Default: 120; in the background, it runs as long as the sandbox."
        },
        "background": {
            "type": "boolean",
            "description": "Returns an id at once: for servers and long work. check_command returns the output, stop_command ends it."
        }
    });
    let description = "Runs a command in the sandbox of the project and returns its exit code and output. localhost works inside; \
                       other hosts are reachable only if the project allows them.";
    let definition = changing("execute_command", description, properties, &["command"]);
    HostToolDefinition { timeout: Duration::from_secs(MAX_SECONDS + 60), ..definition }
}

pub async fn execute(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let line = exact_text(&call, "command")?;
    if line.trim().is_empty() {
        return Err("command: it is empty; say what to run".to_owned());
    }
    let is_background = flag(&call, "background");
    let seconds = number(&call, "timeout_seconds").map(|seconds| seconds.clamp(1, MAX_SECONDS));
    let timeout = match is_background {
        true => seconds,
        false => Some(seconds.unwrap_or(DEFAULT_SECONDS)),
    };
    let request = CommandRequest { line, timeout: timeout.map(Duration::from_secs) };
    let started = toolbox.commands.start(&call.agent.workspace.space, request).await;
    let command = started.map_err(|error| error.to_string())?;
    if is_background {
        let ended = tokio::time::timeout(BACKGROUND_WATCH, command.ended()).await;
        return Ok(outcome(&command, ended.unwrap_or(CommandStatus::RUNNING), 0));
    }
    // Nobody would see the end of a command whose call is canceled or dropped.
    let mut running = StopOnDrop(Some(&*command));
    let status = tokio::select! {
        status = show(&call, &command) => status,
        () = call.cancel.cancelled() => {
            toolbox.commands.stop(&command).await;
            command.status()
        }
    };
    running.0 = None;
    Ok(outcome(&command, status, 0))
}

struct StopOnDrop<'a>(Option<&'a ProjectCommand>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(command) = self.0 {
            command.request_stop();
        }
    }
}

/// Shows the beginning of the output in the room, and waits for the end of the command.
async fn show(call: &HostCall, command: &Arc<ProjectCommand>) -> CommandStatus {
    let (mut follower, mut left, mut is_cut) = (command.follow(0), MAX_SHOWN_BYTES, false);
    loop {
        match follower.next().await {
            CommandStep::Output(part) if !is_cut => {
                let shown = &part.text[..part.text.floor_char_boundary(left)];
                if !shown.is_empty() {
                    call.report_text(shown).await;
                }
                left -= shown.len();
                if shown.len() < part.text.len() {
                    is_cut = true;
                    call.report_text("\n[more output is not shown]\n").await;
                }
            }
            CommandStep::Output(_) => {}
            CommandStep::Ended(status) => return status,
        }
    }
}

pub fn check_definition() -> HostToolDefinition {
    let properties = json!({
        "id": {"type": "string", "description": "The id that execute_command returned."},
        "after": {"type": "integer", "minimum": 0, "description": "Only the output after this position, which the last result named."},
        "wait_seconds": {
            "type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS,
            "description": "How long to wait for the end of the command."
        }
    });
    let description = "Returns the state and the output of a command in the background.";
    reading("check_command", description, properties, &["id"])
}

pub async fn check(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let command = find(&toolbox, &call)?;
    let wait = Duration::from_secs(number(&call, "wait_seconds").unwrap_or(0).min(MAX_WAIT_SECONDS));
    let status = tokio::time::timeout(wait, command.ended()).await.unwrap_or_else(|_| command.status());
    Ok(outcome(&command, status, number(&call, "after").unwrap_or(0)))
}

pub fn stop_definition() -> HostToolDefinition {
    let properties = json!({"id": {"type": "string", "description": "The id that execute_command returned."}});
    let description = "Kills a command in the background, with everything that it has started.";
    // Only what was allowed to start can be stopped.
    HostToolDefinition { needs_approval: false, ..changing("stop_command", description, properties, &["id"]) }
}

pub async fn stop(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let command = find(&toolbox, &call)?;
    toolbox.commands.stop(&command).await;
    Ok(outcome(&command, command.status(), 0))
}

fn find(toolbox: &ProjectToolbox, call: &HostCall) -> Result<Arc<ProjectCommand>, String> {
    let space = call.agent.workspace.space.key;
    let id = call.text("id").and_then(|id| id.parse::<CommandId>().ok());
    id.and_then(|id| toolbox.commands.find(space, id)).ok_or_else(|| {
        let running = toolbox.commands.list(space).into_iter().filter(|command| command.has_processes());
        let known: Vec<String> = running.map(|command| command.id.to_string()).collect();
        let known =
            if known.is_empty() { "none is running".to_owned() } else { format!("running: {}", known.join(", ")) };
        format!("id: there is no such command; {known}")
    })
}

/// The state in the first line, then the output.
fn outcome(command: &ProjectCommand, status: CommandStatus, after: u64) -> HostToolOutcome {
    let part = command.output(after);
    let output = truncate_middle(part.text.trim_end(), MAX_RESULT_BYTES);
    let (first, is_error) = match status.state {
        CommandState::Running => (
            format!("Running in the background with the id {} (output up to position {})", command.id, part.next),
            false,
        ),
        CommandState::Exited => {
            let code = status.exit_code.unwrap_or_default();
            (format!("Exit code {code}"), code != 0)
        }
        CommandState::Signaled => (format!("Killed by signal {}", status.signal.unwrap_or_default()), true),
        CommandState::TimedOut => {
            ("Killed at the timeout; set a larger timeout_seconds, or background".to_owned(), true)
        }
        CommandState::Stopped => ("Stopped".to_owned(), false),
        CommandState::TooMuchOutput => ("Killed because it printed too much; write to a file instead".to_owned(), true),
        CommandState::SandboxEnded => ("Killed because the sandbox was stopped; start it again".to_owned(), true),
    };
    let left = match status.state {
        CommandState::Exited if command.has_processes() => {
            format!(" Processes that it left behind still run; stop_command with the id {} ends them.", command.id)
        }
        _ => String::new(),
    };
    let text = match output.is_empty() {
        true => format!("{first}.{left} No output."),
        false => format!("{first}.{left} Output:\n{output}"),
    };
    HostToolOutcome { text, is_error }
}
