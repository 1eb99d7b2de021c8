//! `greenroom approve`: lists what waits for a person, and answers it.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient, ClientError,
        responses::{AgentListResponse, ApprovalListResponse, PendingApproval},
    },
    exit::UsageError,
    find::{find, short_id},
};
use crate::terminal::{sanitize, table};
use clap::Args;
use domain::ids::{ApprovalId, RunId};
use serde_json::{Value, json};
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct ApproveArgs {
    /// The approval's id, or a part of it; left out, lists what waits.
    approval: Option<String>,
    /// Deny the call instead.
    #[arg(long, conflicts_with_all = ["always", "answer"])]
    deny: bool,
    /// Allow such calls from now on, for this agent in this room.
    #[arg(long, conflicts_with = "answer")]
    always: bool,
    /// The answer to a question.
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// Print the list as JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

/// A person's decision.
#[derive(Clone, PartialEq, Debug)]
pub enum ApprovalAnswer {
    Allow,
    Always {
        /// Whether the call has a pattern to remember; otherwise exactly this call is.
        has_pattern: bool,
    },
    Deny,
    Text(String),
}

impl ApprovalAnswer {
    fn body(&self) -> Value {
        match self {
            Self::Allow => json!({"decision": "allow"}),
            Self::Always { has_pattern } => {
                json!({"decision": "allow", "remember": if *has_pattern { "pattern" } else { "exact" }})
            }
            Self::Deny => json!({"decision": "deny"}),
            Self::Text(text) => json!({"decision": "allow", "input": {"answer": text}}),
        }
    }
}

pub async fn run(arguments: &ApproveArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let limit = [("limit", "1000")];
    if arguments.json && arguments.approval.is_none() {
        let list: Value = client.get("/api/approvals", &limit).await?;
        table::print_json(&list["approvals"])?;
        return Ok(Exit::Success);
    }
    let ApprovalListResponse { approvals } = client.get("/api/approvals", &limit).await?;
    let Some(wanted) = &arguments.approval else {
        if arguments.deny || arguments.always || arguments.answer.is_some() {
            return Err(
                UsageError("name the approval to answer; without one the waiting ones are listed".into()).into()
            );
        }
        return list(&client, &approvals).await;
    };
    let approval = find("waiting approval", &approvals, wanted)?;
    let has_pattern = approval.pattern.is_some();
    let answer = match &arguments.answer {
        Some(text) => ApprovalAnswer::Text(text.clone()),
        None if arguments.deny => ApprovalAnswer::Deny,
        None if approval.is_question => {
            return Err(UsageError("this is a question: answer it with --answer TEXT, or --deny it".into()).into());
        }
        None if arguments.always => ApprovalAnswer::Always { has_pattern },
        None => ApprovalAnswer::Allow,
    };
    resolve(&client, approval.run_id, approval.id, &answer).await?;
    let done = if answer == ApprovalAnswer::Deny { "denied" } else { "allowed" };
    writeln!(io::stdout(), "{done} {}", sanitize::line(&approval.tool, 100))?;
    Ok(Exit::Success)
}

async fn list(client: &ApiClient, approvals: &[PendingApproval]) -> anyhow::Result<Exit> {
    let names = client.get::<AgentListResponse>("/api/agents", &[]).await?.names();
    let rows = approvals.iter().map(|approval| {
        let agent = names.get(&approval.agent_id).cloned().unwrap_or_else(|| short_id(approval.agent_id.0));
        vec![short_id(approval.id.0), agent, approval.tool.clone(), approval.input.to_string()]
    });
    table::print_standard(&["id", "agent", "tool", "input"], &rows.collect::<Vec<_>>())?;
    Ok(Exit::Success)
}

/// Sends a person's decision.
pub async fn resolve(
    client: &ApiClient,
    run: RunId,
    approval: ApprovalId,
    answer: &ApprovalAnswer,
) -> Result<(), ClientError> {
    client.post_without_result(&format!("/api/runs/{run}/approvals/{approval}"), &answer.body()).await
}
