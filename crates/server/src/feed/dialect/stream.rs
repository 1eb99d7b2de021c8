//! The stream of one run in a dialect. Every frame has an `id:`, so that a client whose connection was lost continues the
//! same run. A resumed stream translates the run again from its first event, because a block may have begun before the
//! position, and leaves out the frames that the client has.

use super::{Dialect, DialectFrame, RunEvent, RunTranslator, StreamPosition};
use crate::{
    App,
    auth::tickets::RedeemedTicket,
    error::Problem,
    feed::{
        room_reader::{FrameBatch, RoomReader, RoomUpdate},
        sse,
    },
    shares::StreamPermit,
};
use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use bytes::{Bytes, BytesMut};
use domain::{
    actor::Actor,
    event::EventType,
    position::{Epoch, Position, Seq},
    run::Run,
};
use engine::commands::{DisconnectGuard, OnDisconnect};
use futures_util::stream;
use std::mem;
use store::journal::Frame;

/// Where a stream begins.
pub enum StreamFrom {
    Run,
    /// The part of a run that answers the message with this seq.
    Message(Seq),
    /// What follows the last frame that the client has.
    After(StreamPosition),
}

/// How a client follows a run.
#[derive(Clone, Copy, Default)]
pub struct StreamOptions {
    pub dialect: Dialect,
    pub on_disconnect: OnDisconnect,
    /// The ticket that the client authenticated with.
    pub ticket: Option<RedeemedTicket>,
}

/// The response with the stream of a run: 204 if the run has ended and the client has all of it, which tells a browser's
/// EventSource not to reconnect.
pub async fn open_run(
    app: &App,
    actor: &Actor,
    permit: StreamPermit,
    run: &Run,
    start: StreamFrom,
    options: StreamOptions,
) -> Result<Response, Problem> {
    let queries = app.engine.queries();
    let is_resumed = matches!(start, StreamFrom::After(_));
    let beginning = Position { epoch: None, seq: run.queued_seq.saturating_sub(1) };
    let whole = |seq| StreamPosition { run: run.id, position: Position { epoch: None, seq }, frames: None };
    let after = match start {
        StreamFrom::Run => whole(beginning.seq),
        StreamFrom::Message(seq) => whole(seq),
        // After a restore: the run's events have other seqs now.
        StreamFrom::After(at) if at.position.epoch.as_ref().is_some_and(|epoch| epoch != queries.epoch()) => {
            whole(beginning.seq)
        }
        StreamFrom::After(at) => {
            if at.frames.is_none() && sse::is_complete(queries, run, &at.position).await? {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            at
        }
    };
    let stream = DialectStream {
        live: RoomReader::open(app, actor, permit, run.room_id, &beginning).await?.of_run(run.id),
        app: app.clone(),
        epoch: queries.epoch().clone(),
        after,
        is_resumed,
        translator: RunTranslator::new(options.dialect, run.id, run.room_id),
        is_new: true,
        needs_retry_hint: true,
        has_ended: false,
        ticket: options.ticket,
        disconnect_guard: app.engine.cancel_on_disconnect(actor, run.id, options.on_disconnect),
    };
    Ok(sse::respond(stream::unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) })))
}

struct DialectStream {
    app: App,
    live: RoomReader,
    epoch: Epoch,
    /// What the client has.
    after: StreamPosition,
    is_resumed: bool,
    translator: RunTranslator,
    is_new: bool,
    needs_retry_hint: bool,
    has_ended: bool,
    ticket: Option<RedeemedTicket>,
    disconnect_guard: DisconnectGuard,
}

impl DialectStream {
    async fn next(&mut self) -> Option<Bytes> {
        if mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(b": connected\n\n"));
        }
        while !self.has_ended {
            let (mut out, mut memory) = (BytesMut::new(), None);
            match self.live.next().await {
                RoomUpdate::Frames(batch) => {
                    batch.frames.iter().for_each(|event| self.write_event(event, &mut out));
                    memory = batch.memory;
                }
                RoomUpdate::RunEnded => {
                    if let Some(ticket) = &self.ticket {
                        self.app.tickets.finish(ticket);
                    }
                    self.end(&mut out);
                }
                RoomUpdate::Heartbeat { .. } => out.extend_from_slice(b": keep-alive\n\n"),
                // Cannot happen: the stream starts at a position of the current epoch.
                RoomUpdate::Reset { .. } => {}
                RoomUpdate::Stopping => {
                    let advice = "The server is stopping; follow the room's events for the rest of the answer.";
                    self.write_failure("server_stopping", advice, &mut out);
                }
                RoomUpdate::Failed(problem) => {
                    problem.log("execute");
                    self.write_failure(problem.code().as_str(), problem.detail(), &mut out);
                }
            }
            if !out.is_empty() {
                return Some(FrameBatch::hold(memory, out.freeze()));
            }
        }
        None
    }

    fn write_event(&mut self, frame: &Frame, out: &mut BytesMut) {
        let Some(event) = RunEvent::parse(frame) else { return };
        let seq = event.seq;
        // It names the run, and a message may have been steered into a run that was queued long ago.
        let is_first = frame.kind == EventType::RunQueued && !self.is_resumed;
        let frames = self.translator.translate(event);
        let last = frames.len().saturating_sub(1);
        for (index, frame) in frames.iter().enumerate() {
            if !is_first && !self.after.is_before(seq, index) {
                continue;
            }
            let position = Position { epoch: Some(self.epoch.clone()), seq: seq.max(self.after.position.seq) };
            let frames = (index < last).then_some(index + 1);
            self.write(frame, Some(&StreamPosition { run: self.after.run, position, frames }), out);
        }
    }

    fn write_failure(&mut self, code: &str, message: &str, out: &mut BytesMut) {
        let failure = self.translator.failure(code, message);
        self.write(&failure, None, out);
        self.end(out);
    }

    fn write(&mut self, frame: &DialectFrame, id: Option<&StreamPosition>, out: &mut BytesMut) {
        // With the first frame: some clients take a lone `retry` for an event.
        if mem::take(&mut self.needs_retry_hint) {
            out.extend_from_slice(b"retry: 1000\n");
        }
        if let Some(id) = id {
            out.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        out.extend_from_slice(format!("event: {}\ndata: {}\n\n", frame.event, frame.data).as_bytes());
    }

    fn end(&mut self, out: &mut BytesMut) {
        self.has_ended = true;
        self.disconnect_guard.disarm();
        out.extend_from_slice(b"data: done\n\n");
    }
}
