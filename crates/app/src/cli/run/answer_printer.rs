//! Prints the events of the runs that answer a message: as text, thinking or notes, or not at all.

use super::question::PostedQuestion;
use crate::{
    cli::{Exit, client::feed::FeedEvent, find::short_id},
    terminal::{sanitize, screen::Screen},
};
use domain::{
    event::{Decision, EventBody, EventType, Interruption},
    ids::{AgentId, EventId, RoomId, RunId},
    usage::{Cost, Usage},
};
use std::{
    collections::HashMap,
    io::{self, Write},
};

pub struct AnswerPrinter {
    room: RoomId,
    /// Unfinished runs, in the order they answer.
    open: Vec<RunId>,
    names: HashMap<AgentId, String>,
    /// More than one agent answers, so each name is printed.
    several: bool,
    speaking: Option<AgentId>,
    json: bool,
    last: Option<EventId>,
    failed: bool,
    waiting_for: String,
    /// The last error that was printed: the end of its run does not repeat it.
    reported: Option<String>,
    /// Whether the printer says how to answer an approval.
    prints_approvals: bool,
}

impl AnswerPrinter {
    pub fn new(posted: &PostedQuestion, json: bool) -> Self {
        let first = posted.runs.first().and_then(|run| posted.names.get(&run.agent_id));
        Self {
            room: posted.room,
            open: posted.runs.iter().map(|run| run.id).collect(),
            names: posted.names.clone(),
            several: posted.runs.len() > 1,
            speaking: None,
            json,
            last: None,
            failed: false,
            waiting_for: waiting(first.map(String::as_str)),
            reported: None,
            prints_approvals: true,
        }
    }

    /// Leaves approvals to somebody who asks.
    pub fn without_approvals(self) -> Self {
        Self { prints_approvals: false, ..self }
    }

    pub fn room(&self) -> RoomId {
        self.room
    }

    pub fn open_runs(&self) -> &[RunId] {
        &self.open
    }

    pub fn is_finished(&self) -> bool {
        self.open.is_empty()
    }

    pub fn waiting_for(&self) -> &str {
        &self.waiting_for
    }

    pub fn exit(&self) -> Exit {
        if self.failed { Exit::Failed } else { Exit::Success }
    }

    pub fn print_event<O: Write, S: Write>(&mut self, event: &FeedEvent, screen: &mut Screen<O, S>) -> io::Result<()> {
        let Some(run) = event.run_id.filter(|run| self.open.contains(run)) else { return Ok(()) };
        let ends = event.kind.is_some_and(EventType::ends_a_run);
        // Event ids of a run ascend. After a restore the journal is sent again; events that were printed are skipped.
        if self.last.is_some_and(|last| event.id <= last) && !ends {
            return Ok(());
        }
        self.last = self.last.max(Some(event.id));
        if ends {
            self.open.retain(|open| *open != run);
            self.failed |= event.kind != Some(EventType::RunCompleted);
        }
        if self.json {
            return screen.print_line(&sanitize::json(&event.json));
        }
        if self.several && event.agent_id.is_some() && event.agent_id != self.speaking {
            self.speaking = event.agent_id;
            let name = event.agent_id.and_then(|id| self.names.get(&id)).map_or("another agent", String::as_str);
            screen.finish()?;
            screen.announce(&format!("{name}:"))?;
            self.waiting_for = waiting(Some(name));
        }
        match &event.body {
            Some(body) => self.print_body(body, screen),
            None => Ok(()),
        }
    }

    fn print_body<O: Write, S: Write>(&mut self, body: &EventBody, screen: &mut Screen<O, S>) -> io::Result<()> {
        match body {
            EventBody::ContentDelta(e) => screen.say(&e.delta),
            EventBody::ThinkingDelta(e) => screen.think(&e.delta),
            EventBody::Retract(_) => screen.note("(retracts part of its answer and writes it again)"),
            EventBody::ToolUse(e) => screen.note(&format!("→ {} {}", e.name, e.input)),
            EventBody::ToolResult(e) => {
                let mark = if e.is_error { "✗" } else { "✓" };
                screen.note(&format!("{mark} {}", brief(&e.content)))
            }
            EventBody::ApprovalRequested(_) if !self.prints_approvals => Ok(()),
            EventBody::ApprovalRequested(e) => {
                let id = short_id(e.approval_id.0);
                let (asks, how) = match e.is_question {
                    true => (format!("? {}", e.input), format!("greenroom approve {id} --answer TEXT")),
                    false => (format!("Allow {}? {}", e.name, e.input), format!("greenroom approve {id} [--deny]")),
                };
                screen.announce(&asks)?;
                screen.note(&format!("  answer with: {how}; denied by itself at {}", e.expires_at))
            }
            EventBody::ApprovalResolved(e) => screen.note(match e.decision {
                Decision::Allow => "allowed",
                Decision::Deny => "denied",
                Decision::Expired => "denied, because nobody answered in time",
            }),
            EventBody::Status(e) if !e.message.is_empty() => screen.note(&e.message),
            EventBody::ErrorReported(e) => {
                self.reported = Some(e.message.clone());
                screen.finish()?;
                screen.announce(&format!("{} ({})", e.message, e.code))
            }
            EventBody::StreamEnd(e) if e.skipped => screen.note("chose not to answer"),
            EventBody::RunCompleted(e) => self.close("", e.usage, e.exact_cost(), e.duration_ms, screen),
            EventBody::RunFailed(e) => {
                let said = match self.reported.as_ref() == Some(&e.error.message) {
                    true => "failed · ".to_owned(),
                    false => format!("failed: {} ({}) · ", e.error.message, e.error.code),
                };
                self.close(&said, e.usage, e.exact_cost(), e.duration_ms, screen)
            }
            EventBody::RunCancelled(e) => self.close("cancelled · ", e.usage, e.exact_cost(), e.duration_ms, screen),
            EventBody::RunInterrupted(e) => {
                let said = match e.reason {
                    Interruption::NewMessage => "interrupted by a newer message · ",
                    Interruption::Shutdown => "interrupted: the server was stopped · ",
                    Interruption::Crash => "interrupted: the server died · ",
                };
                self.close(said, e.usage, e.exact_cost(), e.duration_ms, screen)
            }
            _ => Ok(()),
        }
    }

    fn close<O: Write, S: Write>(
        &self,
        said: &str,
        usage: Usage,
        cost: Option<Cost>,
        millis: u64,
        screen: &mut Screen<O, S>,
    ) -> io::Result<()> {
        screen.finish()?;
        let (tokens, cost, time) = (usage.total(), dollars(cost), duration(millis));
        let line = format!("{said}{tokens} tokens · {cost} · {time} · room {}", self.room);
        if said.is_empty() { screen.note(&line) } else { screen.announce(&line) }
    }
}

fn waiting(name: Option<&str>) -> String {
    format!("waiting for {}", name.unwrap_or("the agent"))
}

/// Returns text unchanged and anything else as JSON.
fn brief(content: &serde_json::Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}

fn dollars(cost: Option<Cost>) -> String {
    match cost.map(Cost::as_dollars) {
        None => "cost unknown".to_owned(),
        Some(dollars) if dollars == 0.0 || dollars >= 0.01 => format!("${dollars:.2}"),
        Some(dollars) => format!("${dollars:.6}"),
    }
}

fn duration(millis: u64) -> String {
    match millis {
        0..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::{dollars, duration};
    use domain::usage::Cost;

    #[test]
    fn an_unknown_price_is_not_shown_as_zero() {
        assert_eq!(dollars(None), "cost unknown");
        assert_eq!(dollars(Some(Cost::ZERO)), "$0.00");
        assert_eq!(dollars(Some(Cost::from_nanos(1_234_000))), "$0.001234");
        assert_eq!(dollars(Some(Cost::from_nanos(1_235_000_000))), "$1.24");
        assert_eq!((duration(1349), duration(65_000)), ("1.3 s".to_owned(), "1 min 5 s".to_owned()));
    }
}
