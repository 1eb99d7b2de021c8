//! Messages: posting, and the folded history.

use crate::{
    App,
    auth::Caller,
    error::{Problem, position_reset},
    extract::{Id, IdempotencyKey, JsonBody, QueryParams},
    http::{attempt, named_page::page_limit},
};
use axum::{Json, extract::State, http::StatusCode, response::Response};
use domain::{
    ids::{AgentId, RoomId},
    message::{Attachment, Message},
    position::{Epoch, Position},
    room::WhenBusy,
};
use engine::commands::{NewPost, PostResult};
use serde::{Deserialize, Serialize};
use store::MessageHistory;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[schema(examples("!count 20 100"), max_length = 524288)]
    text: String,
    /// What happens while agents are still answering; the room's policy by default.
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    #[serde(default)]
    #[schema(max_items = 32)]
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
    let posted = app.engine.post_message(&caller, room, post, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::ACCEPTED, Json(posted)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryParams {
    /// Only messages that start after this position: `17`, or `7c9e6f2a-17` with the epoch. The page then begins with the
    /// oldest of them: send the last `seq` as `since` again while `has_more` is true. A position beyond the head, or of
    /// another epoch, returns `position_reset`. Together with `before` the page has the newest of the range.
    #[param(example = "0", pattern = "^([0-9A-Za-z]{1,64}-)?[0-9]{1,18}$")]
    since: Option<String>,
    /// Only messages that start before this seq, for paging backwards.
    #[param(minimum = 0)]
    before: Option<u64>,
    /// Maximum number of messages: with `since` the oldest of the range, otherwise the newest.
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
    /// Whether the range has more messages: older ones, for which you send the first seq of this page as `before`, or with
    /// `since` newer ones, for which you send the last seq as `since`. A page ends at `limit` messages or about 4 MB.
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
    let limit = page_limit(range.limit, 200)?;
    let since = range.since.as_deref().map(str::parse::<Position>).transpose();
    let since = since.map_err(|error| Problem::invalid(format!("since: {error}")).with("parameter", "since"))?;
    let (queries, workspace, before) = (app.engine.queries(), &caller.workspace, range.before);
    let page = app.shares.read_page(&caller).await?;
    let history = match &since {
        None => queries.history(workspace, room, 0, before, limit).await?,
        Some(since) => {
            let history = match before {
                None => queries.history_after(workspace, room, since.seq, None, limit).await?,
                Some(_) => queries.history(workspace, room, since.seq, before, limit).await?,
            };
            if since.seq > history.head || since.epoch.as_ref().is_some_and(|epoch| *epoch != history.epoch) {
                return Err(position_reset(&history.epoch, history.head));
            }
            history
        }
    };
    let MessageHistory { epoch, head, messages, has_more } = history;
    let view = HistoryView { epoch, head, messages, has_more };
    // A long page takes a while to write, and a thread of the server would serve nobody else meanwhile.
    let body = tokio::task::spawn_blocking(move || serde_json::to_vec(&view)).await.map_err(Problem::internal)?;
    page.respond(body.map_err(Problem::internal)?)
}
