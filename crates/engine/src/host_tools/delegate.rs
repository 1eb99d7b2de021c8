//! `delegate` and `ask_agent`: an agent gives a task to another agent and gets its answer as the result of the tool. Several
//! calls at once run side by side.

use super::EngineLink;
use crate::commands::{ChildProgress, ChildTask};
use domain::{actor::Actor, run_tree::ChildRun};
use providers::host_tools::{
    HostCall, HostTool, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome,
};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// The turn that calls the tool has limits of its own; this one only keeps a call from lasting forever.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How much of the child's text is shown with the call. All of it is in the child's own room.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// How often the turn hears of a child that says nothing. Less than any limit of silence.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(super) struct Delegate(pub EngineLink);

pub(super) struct AskAgent(pub EngineLink);

impl HostTool for Delegate {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": "The name of the agent. A name that does not exist returns the list of agents."},
                "task": {"type": "string", "description": "The task, with everything that the agent needs to know: it reads nothing of this conversation."},
                "return": {"type": "string", "description": "What its answer should contain."}
            },
            "required": ["agent", "task"],
            "additionalProperties": false
        });
        let description = "Gives a task to another agent, which works on it in a room of its own, and returns its answer. \
                           Call it several times at once for tasks that do not depend on each other.";
        HostToolDefinition { timeout: TIMEOUT, ..HostToolDefinition::new("delegate", description, schema) }
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let (Some(agent), Some(task)) = (call.text("agent"), call.text("task")) else {
                return HostToolOutcome::error("agent and task: name an agent and say what it should do");
            };
            let text = match call.text("return") {
                Some(result) => format!("{task}\n\nReturn: {result}"),
                None => task.to_owned(),
            };
            let task = ChildTask { agent: agent.to_owned(), text, only_members_of: None };
            run_child(&self.0, &call, task).await
        })
    }
}

impl HostTool for AskAgent {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": "The name of an agent in this room."},
                "question": {"type": "string", "description": "One question, with what the agent needs to know to answer it."}
            },
            "required": ["agent", "question"],
            "additionalProperties": false
        });
        let description =
            "Asks another agent of this room one question, apart from the conversation, and returns its answer.";
        let definition = HostToolDefinition::new("ask_agent", description, schema);
        HostToolDefinition { timeout: TIMEOUT, audience: HostToolAudience::InCompany, ..definition }
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let (Some(agent), Some(question)) = (call.text("agent"), call.text("question")) else {
                return HostToolOutcome::error("agent and question: name an agent of this room and ask it something");
            };
            let (agent, text) = (agent.to_owned(), question.to_owned());
            let task = ChildTask { agent, text, only_members_of: Some(call.agent.workspace.room_id) };
            run_child(&self.0, &call, task).await
        })
    }
}

async fn run_child(link: &EngineLink, call: &HostCall, task: ChildTask) -> HostToolOutcome {
    let Some(engine) = link.engine() else { return HostToolOutcome::error("The server is stopping.") };
    let actor = Actor::agent(call.agent.workspace.owner.clone(), call.run_id);
    let mut shown = ShownChild { call, left: MAX_SHOWN_BYTES, last: Instant::now() };
    // Dropped when the call is canceled, which cancels the child.
    match call.cancel.run_until_cancelled(engine.run_child(&actor, call.run_id, task, &mut shown)).await {
        Some(Ok(answer)) => HostToolOutcome { text: answer.text, is_error: !answer.is_complete },
        Some(Err(error)) => HostToolOutcome::error(error.to_string()),
        None => HostToolOutcome::error("The call was canceled."),
    }
}

/// Shows what the child does with the call.
struct ShownChild<'a> {
    call: &'a HostCall,
    left: usize,
    last: Instant,
}

impl ChildProgress for ShownChild<'_> {
    async fn started(&mut self, child: ChildRun) {
        self.call.show_child(child).await;
    }

    async fn progress(&mut self, text: &str) {
        let shown = &text[..text.floor_char_boundary(self.left)];
        // An empty report only tells the turn that the tool is at work.
        if shown.is_empty() && self.last.elapsed() < SIGN_OF_LIFE {
            return;
        }
        (self.left, self.last) = (self.left - shown.len(), Instant::now());
        self.call.report_text(shown).await;
    }
}
