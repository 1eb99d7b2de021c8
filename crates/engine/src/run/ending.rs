//! The end of a run: its last events, its folded answer and its rows, in one commit. Every run ends here: by its pump,
//! by recovery, in the queue, or because its agent was deleted.

use super::{
    RunJournal, SettledSignals, StoredStart,
    follow_up::{FollowUp, SpokenTurn},
};
use crate::turn::{
    PendingEvent, RunFinish, TurnEffect, TurnInput, TurnMachine, TurnSettings, TurnStopReason, coalesce,
};
use domain::{
    event::{Event, EventBody, NewEvent},
    ids::MessageId,
    message::{Author, Message},
    name::Name,
    run::{Run, RunStatus},
    time::Timestamp,
};
use providers::{TurnEnd, TurnOutcome};
use store::{
    StoreError,
    journal::{RowChange, RunEnding, SeqRef},
};

pub(crate) struct RunEnd {
    /// The events before the terminal one.
    pub events: Vec<NewEvent>,
    pub terminal: NewEvent,
    /// The folded answer, if the run had started one.
    pub message: Option<Message>,
    pub ending: RunEnding,
    pub signals: SettledSignals,
    /// Further changes: the provider session, remembered tools.
    pub changes: Vec<RowChange>,
    /// What the other agents of the room may react to.
    pub spoken: SpokenTurn,
}

impl RunEnd {
    /// The end that the machine has decided. `started` is the start of the answer, with its author.
    pub(super) fn new(
        journal: &RunJournal,
        run: &Run,
        machine: &TurnMachine,
        finish: RunFinish,
        started: Option<(StoredStart, Author)>,
    ) -> Self {
        let answer = machine.answer();
        let message = started.map(|(started, author)| {
            let (text, thinking) = answer.texts();
            Message {
                id: answer.stream_id.unwrap_or(started.stream_id),
                room_id: run.room_id,
                seq: started.stream_seq,
                author,
                run_id: Some(run.id),
                status: finish.message,
                text,
                thinking,
                parts: answer.parts.clone(),
                attachments: Vec::new(),
                created_at: started.started_at,
            }
        });
        let has_spoken = finish.status == RunStatus::Completed && finish.outcome.end != TurnEnd::Skipped;
        let text = message.as_ref().filter(|_| has_spoken).map_or_else(String::new, |message| message.text.clone());
        let spoken = SpokenTurn { text, ends_round: machine.ends_round() };
        let stopped = matches!(finish.status, RunStatus::Cancelled | RunStatus::Interrupted);
        let ending = RunEnding {
            status: finish.status,
            usage: answer.usage,
            cost: answer.cost,
            model: answer.model.clone().or_else(|| machine.model().map(ToOwned::to_owned)),
            duration_ms: finish.duration_ms,
            error: finish.error,
            receipt: stopped.then_some(finish.outcome.receipt),
        };
        let terminal = journal.event(PendingEvent::new(finish.terminal));
        let (events, signals, changes) = (Vec::new(), SettledSignals::default(), Vec::new());
        Self { events, terminal, message, ending, signals, changes, spoken }
    }

    /// The end of a run without a driver, decided from its stored events. `agent` is `None` if it was deleted.
    pub(crate) fn without_driver(
        journal: &RunJournal,
        run: &Run,
        events: &[Event],
        agent: Option<Name>,
        stop: Option<TurnStopReason>,
        outcome: TurnOutcome,
    ) -> Result<Self, StoreError> {
        let bodies = events.iter().map(Event::body).collect::<Result<Vec<_>, _>>()?;
        let started = events.iter().zip(&bodies).find_map(|(event, body)| match body {
            EventBody::StreamStart(start) => {
                Some(StoredStart { stream_id: start.stream_id, stream_seq: event.seq, started_at: event.created_at })
            }
            _ => None,
        });
        let settings = TurnSettings {
            stream_id: started.map_or_else(MessageId::generate, |started| started.stream_id),
            limits: domain::limits::Limits::default(),
            tools: domain::agent::ToolPolicy::default(),
            remembered: Vec::new(),
            model: run.model.clone(),
            prices: domain::prices::PriceSource::default(),
            started_at: started.map_or(run.created_at, |started| started.started_at),
        };
        let mut machine = TurnMachine::from_events(settings, &bodies);
        let (now, mut effects) = (Timestamp::now(), Vec::new());
        if let Some(why) = stop {
            machine.handle(TurnInput::Stop(why), now, &mut effects);
        }
        machine.handle(TurnInput::Ended(outcome), now, &mut effects);
        let (mut entries, mut finish) = (Vec::new(), None);
        for effect in effects {
            match effect {
                TurnEffect::Append(entry) => entries.push(entry),
                TurnEffect::Finish(end) => finish = Some(end),
                TurnEffect::SetRunStatus(_)
                | TurnEffect::SendCommand(_)
                | TurnEffect::SaveSession(_)
                | TurnEffect::Remember(_)
                | TurnEffect::SteerSettled { .. } => {}
            }
        }
        let unfinished = || StoreError::unreadable("the run's events contain its end, but the queue its run");
        let finish = finish.ok_or_else(unfinished)?;
        let started = match started {
            Some(started) => Some((started, author(run, agent)?)),
            None => None,
        };
        // Without a start there is no answer: only the run itself has to be closed.
        let has_answer = started.is_some();
        let mut end = Self::new(journal, run, &machine, finish, started);
        if has_answer {
            end.events = coalesce(entries).into_iter().map(|entry| journal.event(entry)).collect();
        }
        Ok(end)
    }
}

fn author(run: &Run, agent: Option<Name>) -> Result<Author, StoreError> {
    let name = match agent {
        Some(name) => name,
        None => Name::parse("deleted agent").map_err(|error| StoreError::unreadable("a name").caused_by(error))?,
    };
    Ok(Author::Agent { id: run.agent_id, name })
}

impl RunJournal {
    /// Stores the end, and in the same commit what follows it: the next cell of the room's tape, and a run for each
    /// message that was sent to this one meanwhile.
    pub(crate) async fn end(&self, end: RunEnd) -> Result<(), StoreError> {
        let RunEnd { events, terminal, message, ending, mut signals, changes, spoken } = end;
        let mut follow_up = FollowUp::default();
        loop {
            let mut all = events.clone();
            all.extend(signals.events());
            let first_follow_up = all.len();
            all.extend(follow_up.events());
            // The last event of the run.
            all.push(terminal.clone());
            let ended = SeqRef::Event(all.len() - 1);
            let rows = || {
                let mut rows = changes.clone();
                rows.extend(signals.changes(self, events.len()));
                rows.extend(follow_up.changes(self, first_follow_up));
                if let Some(message) = &message {
                    rows.push(RowChange::PutAnswer { message: message.clone(), ended });
                }
                rows.push(RowChange::EndRun { run_id: self.run_id(), ending: ending.clone() });
                rows
            };
            match self.commit(all, rows).await {
                Err(StoreError::UnsettledSignals) if signals.redirect_unread(self, self.pending_signals().await?) => {}
                Err(StoreError::TapeChanged) => {
                    let (tape, room) = tokio::join!(self.tape(), self.room());
                    follow_up = FollowUp::decide(self.ended_turn(&ending), &spoken, tape?, &room?)?;
                }
                done => return done.map(|_| ()),
            }
        }
    }
}
