//! The SSE stream of a command in the sandbox of a project: `started`, `output` for each piece of text, and `ended`. The id of
//! an `output` event is the position after it, so that a client can go on from there.

use super::sse::{self, MAX_SILENCE, RETRY_HINT, STOPPING, error_event};
use crate::{App, auth::access_changes::AccessWatch, error::Problem, shares::StreamPermit};
use axum::response::Response;
use bytes::Bytes;
use domain::{actor::Actor, ids::ProjectId};
use engine::commands::{CommandUpdate, FollowedCommand};
use futures_util::stream;
use serde::Serialize;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The id of the last event: a client that has it has everything.
pub const END_ID: &str = "end";

pub struct CommandStream {
    app: App,
    actor: Actor,
    project: ProjectId,
    command: FollowedCommand,
    access: AccessWatch,
    heartbeat: Duration,
    /// When the access is checked again.
    check_at: Instant,
    is_started: bool,
    has_ended: bool,
    _permit: StreamPermit,
}

/// A piece of the output.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = CommandOutput)]
pub struct OutputEvent {
    /// Standard output and standard error.
    text: String,
    /// Bytes that were left out because the client was too slow, or connected late.
    omitted_bytes: u64,
}

impl CommandStream {
    pub fn respond(
        app: &App,
        actor: &Actor,
        permit: StreamPermit,
        project: ProjectId,
        command: FollowedCommand,
    ) -> Response {
        let heartbeat = app.config.heartbeat.min(MAX_SILENCE);
        let stream = Self {
            app: app.clone(),
            actor: actor.clone(),
            project,
            command,
            access: app.access_changes.watch(),
            heartbeat,
            check_at: Instant::now() + heartbeat,
            is_started: false,
            has_ended: false,
            _permit: permit,
        };
        sse::respond(stream::unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        if !std::mem::replace(&mut self.is_started, true) {
            let started = event("started", None, &self.command.summary());
            return Some(format!("{RETRY_HINT}{started}").into());
        }
        let stopping = self.app.stopping.clone();
        loop {
            // Also for a command that prints without a pause.
            let is_due = self.check_at <= Instant::now();
            if self.access.take() || is_due {
                if let Err(problem) = self.recheck_access().await {
                    self.has_ended = true;
                    return Some(error_event(&problem));
                }
                self.check_at = Instant::now() + self.heartbeat;
            }
            if is_due {
                return Some(Bytes::from_static(b": keep-alive\n\n"));
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => {
                    self.has_ended = true;
                    return Some(Bytes::from_static(STOPPING));
                }
                // Both are checked at the beginning of the loop.
                () = sleep_until(self.check_at) => {}
                () = self.access.wait() => {}
                update = self.command.next() => return Some(self.bytes_of(update)),
            }
        }
    }

    fn bytes_of(&mut self, update: CommandUpdate) -> Bytes {
        match update {
            CommandUpdate::Output(part) => {
                let data = OutputEvent { text: part.text, omitted_bytes: part.omitted_bytes };
                event("output", Some(&part.next.to_string()), &data).into()
            }
            CommandUpdate::Ended(summary) => {
                self.has_ended = true;
                event("ended", Some(END_ID), &summary).into()
            }
        }
    }

    /// A stream outlives the checks of its request: the token may be revoked and the project deleted meanwhile.
    async fn recheck_access(&self) -> Result<(), Problem> {
        self.app.authenticator.recheck(&self.actor).await?;
        let command = self.command.summary().id;
        Ok(self.app.engine.project_command(&self.actor, self.project, command, u64::MAX).await.map(drop)?)
    }
}

/// JSON has no line breaks, so it is one line of data.
fn event(kind: &str, id: Option<&str>, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {kind}\ndata: {data}\n\n")
}
