//! A room's events: a page of JSON, a live stream, or many rooms over one WebSocket.

use crate::{
    App,
    auth::Caller,
    error::{Code, Problem},
    extract::{Id, Params},
    feed::{
        Live,
        page::{self, EventPage},
        sse, websocket,
    },
};
use axum::{
    extract::{State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::HeaderMap,
    response::Response,
};
use domain::ids::RoomId;
use serde::Deserialize;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct After {
    /// `17`, or `7c9e6f2a-17` as in the id of a stream's frame. 0 is the beginning.
    #[param(example = "0")]
    after: Option<String>,
    /// Of a page; a stream goes on for ever.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<u32>,
    /// Adds what the provider sent to each event of a page.
    raw: Option<bool>,
}

/// What happened in a room
///
/// A page of events after a position; with `Accept: text/event-stream` the live feed from that position on. A stream
/// resumes by `Last-Event-ID`. A position that is not in this journal is answered with `position_reset`, in a stream
/// with a `reset` event and the journal from its beginning.
#[utoipa::path(get, path = "/api/rooms/{id}/events", tag = "events", params(("id" = RoomId, Path), After),
    responses((status = 200, content((EventPage = "application/json"), (String = "text/event-stream")))))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(room): Id<RoomId>,
    Params(after): Params<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let position = sse::position(&headers, after.after.as_deref())?;
    if sse::is_wanted(&headers) {
        if after.raw == Some(true) {
            return Err(Problem::invalid("raw: only pages carry it; ask without Accept: text/event-stream."));
        }
        let live = Live::open(&app, &caller, room, &position).await?;
        return Ok(sse::room(&app, live));
    }
    let limit = match after.limit.unwrap_or(page::DEFAULT_LIMIT) {
        limit if (1..=page::MAX_LIMIT).contains(&limit) => limit,
        _ => return Err(Problem::invalid(format!("limit: a number from 1 to {}.", page::MAX_LIMIT))),
    };
    let raw = after.raw.unwrap_or(false);
    let read = app.engine.store().page(&caller.owner, room, &position, limit, raw).await?;
    if read.reset {
        let detail = "This position is not in the room's journal, which was restored or never got that far; \
                      forget what you have and read again with after=0.";
        return Err(Problem::new(Code::PositionReset, detail)
            .with("epoch", read.epoch.as_str())
            .with("head", read.head));
    }
    Ok(page::respond(&read, raw))
}

/// Many rooms over one WebSocket
///
/// Send `{"type":"subscribe","room":"…","after":0}`; see the guide to events.
#[utoipa::path(get, path = "/api/ws", tag = "events", responses((status = 101, description = "Switching protocols")))]
pub async fn socket(
    State(app): State<App>,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|rejection| {
        Problem::invalid(format!("This door speaks WebSocket: {}.", rejection.body_text().trim_end_matches('.')))
    })?;
    let upgrade = upgrade
        .read_buffer_size(websocket::READ_BUFFER_BYTES)
        .write_buffer_size(websocket::WRITE_BUFFER_BYTES)
        .max_message_size(websocket::MAX_MESSAGE_BYTES)
        .max_frame_size(websocket::MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| websocket::serve(app, caller.0, socket)))
}
