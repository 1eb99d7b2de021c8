//! Messages: posting one, and the folded history.

use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Body, Id, IdempotencyKey, Params},
    http::attempt,
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, RoomId},
    message::{Attachment, Message},
    position::Epoch,
    room::WhenBusy,
};
use engine::commands::{Post, Posted};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[schema(examples("!count 20 100"))]
    text: String,
    /// What happens while agents still answer; the room's policy when left out.
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    /// Only these agents answer; all when left out.
    #[serde(default)]
    mentions: Vec<AgentId>,
}

/// Say something
///
/// The message and the runs that will answer it are stored when this returns. Follow the room's events to see the
/// answers.
#[utoipa::path(post, path = "/api/rooms/{id}/messages", tag = "messages", params(("id" = RoomId, Path)),
               request_body = NewMessage, responses((status = 202, body = Posted)))]
pub async fn post(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    key: IdempotencyKey,
    Body(new, fingerprint): Body<NewMessage>,
) -> Result<(StatusCode, Json<Posted>), Problem> {
    let NewMessage { text, when_busy, attachments, mentions } = new;
    let post = Post { text, when_busy, attachments, mentions };
    let posted = app.engine.post(&caller.owner, room, post, attempt(key, fingerprint).as_ref()).await?;
    Ok((StatusCode::ACCEPTED, Json(posted)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Range {
    /// Only messages that began after this seq.
    #[param(minimum = 0)]
    since: Option<u64>,
    /// Only messages that began before this seq: for paging back.
    #[param(minimum = 0)]
    before: Option<u64>,
    /// The newest so many of them.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct History {
    epoch: Epoch,
    /// The messages are folded up to exactly this event: follow the events after it.
    head: u64,
    messages: Vec<Message>,
}

/// What was said
///
/// Oldest first. An answer that is under way is there with status `streaming` and its text so far.
#[utoipa::path(get, path = "/api/rooms/{id}/messages", tag = "messages", params(("id" = RoomId, Path), Range),
               responses((status = 200, body = History)))]
pub async fn history(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    Params(range): Params<Range>,
) -> Result<Json<History>, Problem> {
    let limit = match range.limit.unwrap_or(200) {
        limit @ 1..=1000 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 1000.")),
    };
    let since = range.since.unwrap_or(0);
    let history = app.engine.store().history(&caller.owner, room, since, range.before, limit).await?;
    Ok(Json(History { epoch: history.epoch, head: history.head, messages: history.messages }))
}
