//! Messages: posting, and the folded history.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Id, IdempotencyKey, JsonBody, QueryParams},
    http::attempt,
};
use axum::{Json, extract::State, http::StatusCode, response::Response};
use domain::{
    ids::{AgentId, RoomId},
    message::{Attachment, Message},
    position::Epoch,
    room::WhenBusy,
};
use engine::commands::{NewPost, PostResult};
use serde::{Deserialize, Serialize};
use store::MessageHistory;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[schema(examples("!count 20 100"))]
    text: String,
    /// What happens while agents are still answering; the room's policy by default.
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    /// Only these agents answer. By default those that the text names with `@`, or all agents if it names none.
    #[serde(default)]
    mentions: Vec<AgentId>,
    /// Whether agents answer the message. `false` only stores it: it interrupts nothing and starts nothing.
    #[serde(default = "yes")]
    run: bool,
}

fn yes() -> bool {
    true
}

/// Post a message
///
/// Returns when the message and the runs that answer it first are stored. Follow the room's events to see the answers; the
/// tape tells who speaks later.
#[utoipa::path(post, path = "/api/rooms/{id}/messages", tag = "messages", params(("id" = RoomId, Path)),
               request_body = NewMessage, responses((status = 202, body = PostResult)))]
pub async fn post(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewMessage>,
) -> Result<(StatusCode, Json<PostResult>), Problem> {
    let NewMessage { text, when_busy, attachments, mentions, run } = new;
    let post = NewPost { text, when_busy, attachments, mentions, run };
    let posted = app.engine.post(&caller, room, post, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::ACCEPTED, Json(posted)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryParams {
    /// Only messages that start after this seq.
    #[param(minimum = 0)]
    since: Option<u64>,
    /// Only messages that start before this seq, for paging backwards.
    #[param(minimum = 0)]
    before: Option<u64>,
    /// Maximum number of messages; the newest are returned.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = History)]
pub struct HistoryView {
    epoch: Epoch,
    /// The messages include all events up to this seq; follow the events after it.
    head: u64,
    messages: Vec<Message>,
    /// Whether the range has older messages: send the first seq of this page as `before`. A page ends at `limit` messages
    /// or about 4 MB.
    has_more: bool,
}

/// List messages
///
/// Oldest first. An unfinished answer has the status `streaming` and its text so far.
#[utoipa::path(get, path = "/api/rooms/{id}/messages", tag = "messages", params(("id" = RoomId, Path), HistoryParams),
               responses((status = 200, body = HistoryView)))]
pub async fn history(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    QueryParams(range): QueryParams<HistoryParams>,
) -> Result<Response, Problem> {
    let limit = match range.limit.unwrap_or(200) {
        limit @ 1..=1000 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 1000.")),
    };
    let since = range.since.unwrap_or(0);
    let page = app.shares.read_page(&caller).await?;
    let history = app.engine.queries().history(&caller.workspace, room, since, range.before, limit).await?;
    let MessageHistory { epoch, head, messages, has_more } = history;
    let view = HistoryView { epoch, head, messages, has_more };
    // A long page takes a while to write, and a thread of the server would serve nobody else meanwhile.
    let body = tokio::task::spawn_blocking(move || serde_json::to_vec(&view)).await.map_err(Problem::internal)?;
    page.respond(body.map_err(Problem::internal)?)
}
