//! `/api/agents/{id}/messages?since=`: what an agent has answered in all rooms, for a client that lost some messages of
//! its WebSocket.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, QueryParams},
};
use axum::{Json, extract::State};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    message::MessageStatus,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// The approximate maximum size of a page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentMessagesParams {
    /// The `sequenceNumber` of the last message that the client has; 0 for the first messages.
    #[param(minimum = 0)]
    since: Option<u64>,
    /// Maximum number of messages.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct AgentMessageList {
    /// In the order in which they ended.
    messages: Vec<AgentMessageView>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentMessage)]
pub struct AgentMessageView {
    /// The id of the message.
    id: MessageId,
    /// The agent.
    agent_id: AgentId,
    /// The room of the answer.
    room_id: RoomId,
    /// The run of the answer.
    run_id: RunId,
    /// Always `assistant`.
    role: &'static str,
    /// The text of the answer.
    content: String,
    /// Whether the answer is whole.
    status: MessageStatus,
    /// When the answer ended, in milliseconds since 1970. Messages are sorted by it.
    sequence_number: i64,
    /// When the answer began.
    created_at: Timestamp,
}

/// List the messages of an agent
///
/// Its finished answers in all rooms, in the order in which they ended. Send the last `sequenceNumber` as `since` to get those
/// that ended later.
#[utoipa::path(get, path = "/api/agents/{id}/messages", tag = "aliases",
               params(("id" = AgentId, Path), AgentMessagesParams), responses((status = 200, body = AgentMessageList)))]
pub async fn list_agent_messages(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AgentId>,
    QueryParams(params): QueryParams<AgentMessagesParams>,
) -> Result<Json<AgentMessageList>, Problem> {
    let limit = match params.limit.unwrap_or(100) {
        limit @ 1..=200 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 200.")),
    };
    let (queries, owner) = (app.engine.queries(), &caller.workspace);
    let agent_id = queries.agent(owner, id).await?.id;
    let since = Timestamp::from_millis(params.since.and_then(|since| since.try_into().ok()).unwrap_or(0));
    let _reading = app.shares.read_page(&caller).await?;
    let (mut messages, mut bytes) = (Vec::<AgentMessageView>::new(), 0);
    for run in queries.ended_runs(owner, agent_id, since, limit).await? {
        let Some(message) = queries.message_of_run(&run).await? else { continue };
        let sequence_number = run.ended_at.unwrap_or_default().as_millis();
        bytes += message.text.len();
        // The next page begins after the time of the last message, so a page does not divide those of one time.
        if bytes > PAGE_BYTES && messages.last().is_some_and(|last| last.sequence_number != sequence_number) {
            break;
        }
        messages.push(AgentMessageView {
            id: message.id,
            agent_id,
            room_id: run.room_id,
            run_id: run.id,
            role: "assistant",
            content: message.text,
            status: message.status,
            sequence_number,
            created_at: message.created_at,
        });
    }
    Ok(Json(AgentMessageList { messages }))
}
