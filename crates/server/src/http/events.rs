//! A room's events: a page of JSON, a live stream, or many rooms over one WebSocket.

use crate::{
    App,
    auth::Caller,
    error::{Problem, position_reset},
    extract::{Id, QueryParams},
    feed::{
        RoomReader,
        client_socket::SocketUpgrade,
        page::{self, EventPage},
        sse, websocket,
    },
};
use axum::{extract::State, http::HeaderMap, response::Response};
use domain::ids::RoomId;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsParams {
    /// `17`, or `7c9e6f2a-17` as in the id of a stream's frame. 0 is the beginning.
    #[param(example = "0", pattern = "^([0-9A-Za-z]{1,64}-)?[0-9]{1,18}$")]
    after: Option<String>,
    /// Page size; ignored by streams.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<u32>,
    /// Adds the provider's original data to each event of a page.
    raw: Option<bool>,
}

/// List a room's events
///
/// A page of events after a position; with `Accept: text/event-stream`, the live feed from that position on. Each frame
/// of a stream has an `Event` as its `data`, and the type of that as its `event`. A stream resumes with `Last-Event-ID`.
/// A position that is not in this journal returns `position_reset`; a stream sends a `reset` event and then the journal
/// from its beginning.
#[utoipa::path(get, path = "/api/rooms/{id}/events", tag = "events", params(("id" = RoomId, Path), EventsParams),
    responses((status = 200, content((EventPage = "application/json"), (String = "text/event-stream")))))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    QueryParams(after): QueryParams<EventsParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let position = sse::position(&headers, after.after.as_deref())?;
    if sse::is_wanted(&headers)? {
        if after.raw == Some(true) {
            return Err(Problem::unprocessable("raw: streams do not support it; send no Accept: text/event-stream."));
        }
        let permit = app.shares.open_stream(&caller)?;
        let live = RoomReader::open(&app, &caller, permit, room, &position).await?;
        return Ok(sse::stream_of(&app, live));
    }
    let limit = match after.limit.unwrap_or(page::DEFAULT_LIMIT) {
        limit if (1..=page::MAX_LIMIT).contains(&limit) => limit,
        _ => return Err(Problem::invalid(format!("limit: a number from 1 to {}.", page::MAX_LIMIT))),
    };
    let raw = after.raw.unwrap_or(false);
    let share = app.shares.read_page(&caller).await?;
    let read = app.engine.queries().page(&caller.workspace, room, &position, limit, raw).await?;
    if read.reset {
        return Err(position_reset(&read.epoch, read.head));
    }
    share.respond(page::json(&read, raw))
}

/// Follow many rooms over one WebSocket
///
/// Every message is one JSON text. A client sends `SocketRequest`, such as `{"type":"subscribe","room":"…","after":0}`; the
/// server sends `SocketMessage`.
#[utoipa::path(get, path = "/api/ws", tag = "events", responses((status = 101, description = "Switching protocols")))]
pub async fn socket(State(app): State<App>, caller: Caller, upgrade: SocketUpgrade) -> Result<Response, Problem> {
    let permit = app.shares.open_stream(&caller)?;
    Ok(upgrade.serve(move |socket| websocket::serve(app, caller.0, permit, socket)))
}
