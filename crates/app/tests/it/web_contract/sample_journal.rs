//! Appends events to a journal in memory. Ids and times count up, so that the journal is the same every time.

use domain::{
    event::{Event, EventBody, NewEvent, RunCancelled, RunCompleted, RunFailed, RunInterrupted, StreamEnd},
    event::{Interruption, MessagePosted, RunQueued, RunStarted, StreamStart},
    fold::Answer,
    ids::{AgentId, MessageId, RoomId, RunId, UserId},
    limits::Limit,
    message::{Attachment, Author},
    name::Name,
    position::Seq,
    room::WhenBusy,
    run::{Receipt, Run, RunError, RunStatus},
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::{fmt::Debug, str::FromStr};

/// 2026-11-15T09:30:00Z
const BEGIN_MILLIS: i64 = 1_794_735_000_000;
const MILLIS_PER_EVENT: u64 = 40;

pub struct SampleJournal {
    pub room_id: RoomId,
    /// The person in the room.
    pub user_id: UserId,
    pub events: Vec<Event>,
    /// The runs as they are after the last event.
    pub runs: Vec<Run>,
    last_id: u64,
}

/// A run that has not ended.
pub struct SampleRun {
    pub id: RunId,
    pub agent_id: AgentId,
    pub stream_id: MessageId,
    answer: Answer,
}

impl SampleJournal {
    pub fn new() -> Self {
        Self { room_id: numbered(1), user_id: numbered(2), events: Vec::new(), runs: Vec::new(), last_id: 2 }
    }

    pub fn id<I: FromStr<Err: Debug>>(&mut self) -> I {
        self.last_id += 1;
        numbered(self.last_id)
    }

    /// When the last event was stored.
    pub fn now(&self) -> Timestamp {
        let millis = MILLIS_PER_EVENT * self.head();
        Timestamp::from_millis(BEGIN_MILLIS + i64::try_from(millis).unwrap())
    }

    /// An event of no run.
    pub fn append(&mut self, body: impl Into<EventBody>) {
        self.push(body.into(), None);
    }

    /// An event of a run.
    pub fn append_to(&mut self, run: &mut SampleRun, body: impl Into<EventBody>) {
        let body = body.into();
        run.answer.apply(&body);
        self.push(body, Some((run.id, run.agent_id)));
    }

    pub fn post(&mut self, text: &str, when_busy: WhenBusy) -> MessageId {
        self.post_with(text, when_busy, Vec::new(), Vec::new())
    }

    pub fn post_with(
        &mut self,
        text: &str,
        when_busy: WhenBusy,
        mentions: Vec<AgentId>,
        attachments: Vec<Attachment>,
    ) -> MessageId {
        let message_id = self.id();
        let author = Author::Person { name: name("local"), user_id: Some(self.user_id) };
        self.append(MessagePosted { message_id, author, text: text.to_owned(), when_busy, mentions, attachments });
        message_id
    }

    pub fn queue(&mut self, agent_id: AgentId, message_id: MessageId) -> SampleRun {
        let mut run = SampleRun { id: self.id(), agent_id, stream_id: self.id(), answer: Answer::default() };
        self.append_to(&mut run, RunQueued { message_id });
        self.runs.push(Run {
            id: run.id,
            room_id: self.room_id,
            agent_id,
            message_id,
            parent_id: None,
            root_id: None,
            depth: 0,
            status: RunStatus::Queued,
            queued_seq: self.head(),
            usage: Usage::default(),
            cost: None,
            model: None,
            duration_ms: None,
            error: None,
            receipt: None,
            created_at: self.now(),
            started_at: None,
            ended_at: None,
        });
        run
    }

    pub fn start(&mut self, run: &mut SampleRun, model: Option<&str>) {
        self.append_to(run, RunStarted { provider: "scripted".into(), model: model.map(Into::into) });
        let now = self.now();
        let row = self.row(run);
        (row.status, row.started_at, row.model) = (RunStatus::Running, Some(now), model.map(Into::into));
        self.append_to(run, StreamStart { stream_id: run.stream_id });
    }

    /// Posts a message for one agent, which starts to answer it at once.
    pub fn ask(&mut self, agent_id: AgentId, text: &str) -> SampleRun {
        let message_id = self.post(text, WhenBusy::Enqueue);
        let mut run = self.queue(agent_id, message_id);
        self.start(&mut run, Some("scripted-1"));
        run
    }

    pub fn complete(&mut self, run: SampleRun) {
        self.end_stream(run, false, RunStatus::Completed, None);
    }

    pub fn skip(&mut self, run: SampleRun) {
        self.end_stream(run, true, RunStatus::Completed, None);
    }

    pub fn cancel(&mut self, run: SampleRun) {
        self.end_stream(run, false, RunStatus::Cancelled, None);
    }

    pub fn interrupt(&mut self, run: SampleRun, reason: Interruption) {
        self.end_stream(run, false, RunStatus::Interrupted, Some(RunEndReason::Interrupted(reason)));
    }

    pub fn fail(&mut self, run: SampleRun, error: RunError, limit: Option<Limit>) {
        self.end_stream(run, false, RunStatus::Failed, Some(RunEndReason::Failed(error, limit)));
    }

    /// Ends a run that has no answer, because it never started.
    pub fn fail_before_start(&mut self, run: SampleRun, error: RunError) {
        self.end(run, RunStatus::Failed, Some(RunEndReason::Failed(error, None)));
    }

    pub fn cancel_before_start(&mut self, run: SampleRun) {
        self.end(run, RunStatus::Cancelled, None);
    }

    fn end_stream(&mut self, mut run: SampleRun, skipped: bool, status: RunStatus, reason: Option<RunEndReason>) {
        let (response_text, thinking_text) = run.answer.texts();
        let (stream_id, session_id) = (run.stream_id, Some("session-1".to_owned()));
        let memory_entries = run.answer.memories.iter().cloned().map(serde_json::Value::from).collect();
        let model_calls = run.answer.model_calls.clone();
        let end =
            StreamEnd { stream_id, response_text, thinking_text, session_id, memory_entries, model_calls, skipped };
        self.append_to(&mut run, end);
        self.end(run, status, reason);
    }

    fn end(&mut self, mut run: SampleRun, status: RunStatus, reason: Option<RunEndReason>) {
        let (usage, cost) = (run.answer.usage, run.answer.cost);
        let started_at = self.row(&run).started_at.unwrap_or(self.now());
        let duration_ms = u64::try_from(self.now().since(started_at).as_millis()).unwrap();
        let receipt = Receipt { processes: 2, signals: vec!["SIGINT".into(), "SIGTERM".into()], millis: 12 };
        let cost_nanos = cost.map(Cost::as_nanos);
        let body: EventBody = match (status, reason.clone()) {
            (_, Some(RunEndReason::Failed(error, limit))) => {
                RunFailed { error, limit, usage, cost, cost_nanos, duration_ms }.into()
            }
            (_, Some(RunEndReason::Interrupted(reason))) => {
                RunInterrupted { reason, receipt: receipt.clone(), usage, cost, cost_nanos, duration_ms }.into()
            }
            (RunStatus::Cancelled, None) => {
                RunCancelled { receipt: receipt.clone(), usage, cost, cost_nanos, duration_ms }.into()
            }
            (_, None) => RunCompleted { usage, cost, cost_nanos, duration_ms }.into(),
        };
        self.append_to(&mut run, body);
        let now = self.now();
        let row = self.row(&run);
        (row.status, row.usage, row.cost) = (status, usage, cost);
        (row.duration_ms, row.ended_at) = (Some(duration_ms), Some(now));
        row.model = run.answer.model.clone().or(row.model.take());
        match reason {
            Some(RunEndReason::Failed(error, _)) => row.error = Some(error),
            _ if status != RunStatus::Completed => row.receipt = Some(receipt),
            _ => {}
        }
    }

    fn row(&mut self, run: &SampleRun) -> &mut Run {
        self.runs.iter_mut().find(|row| row.id == run.id).unwrap()
    }

    fn head(&self) -> Seq {
        self.events.len() as Seq
    }

    fn push(&mut self, body: EventBody, run: Option<(RunId, AgentId)>) {
        let id = self.id();
        let NewEvent { kind, data, .. } = NewEvent::new(body);
        let (room_id, seq) = (self.room_id, self.head() + 1);
        let created_at = Timestamp::from_millis(BEGIN_MILLIS + i64::try_from(MILLIS_PER_EVENT * seq).unwrap());
        let (run_id, agent_id) = run.unzip();
        self.events.push(Event { id, room_id, seq, kind, run_id, agent_id, data, raw: None, created_at });
    }
}

#[derive(Clone)]
enum RunEndReason {
    Failed(RunError, Option<Limit>),
    Interrupted(Interruption),
}

/// The public JSON of an event.
pub fn json_of(event: &Event) -> String {
    let mut json = Vec::new();
    event.write_json(&mut json, false);
    String::from_utf8(json).unwrap()
}

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn numbered<I: FromStr<Err: Debug>>(number: u64) -> I {
    format!("019a0000-0000-7000-8000-{number:012x}").parse().unwrap()
}
