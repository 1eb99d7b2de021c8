//! The signals of a run: what the pump reads from the store and carries out, and how they are settled.
//!
//! Only the holder of the run's lease settles them, in the commit of what they cause. So a message that a run does not
//! take is queued exactly once, whatever happens to the server that accepted it.

use super::RunJournal;
use crate::Engine;
use domain::{
    approval::{DecisionAuthor, RememberScope},
    event::{Decision, NewEvent, RunQueued},
    ids::{ApprovalId, MessageId, RunId, SignalId},
    message::Message,
    signal::{Signal, SignalBody, SignalOutcome},
};
use providers::AttachedFile;
use serde_json::Value;
use std::collections::HashSet;
use store::{
    StoreError,
    journal::{RowChange, SeqRef},
    queue::Claim,
};

/// The signals that the pump has not seen yet.
pub(super) struct SignalInbox {
    engine: Engine,
    claim: Claim,
    /// Signals that the pump has, and that are not settled yet.
    in_progress: HashSet<SignalId>,
}

/// A signal with the data that it takes to carry it out.
pub(super) enum RunRequest {
    AnswerApproval {
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        remember: Option<RememberScope>,
        author: Option<DecisionAuthor>,
    },
    /// Without a text if the attachments of the message cannot be used here: the run that is queued instead reports it.
    Steer {
        message: Message,
        text: Option<String>,
        attachments: Vec<AttachedFile>,
    },
    ForgetTool {
        tool: String,
    },
}

impl SignalInbox {
    pub(super) fn new(engine: Engine, claim: Claim) -> Self {
        Self { engine, claim, in_progress: HashSet::new() }
    }

    /// Reads the signals that were stored since the last call. On an error there are none: they stay in the store, and
    /// the worker wakes the run again.
    pub(super) async fn read_new(&mut self) -> Vec<(SignalId, RunRequest)> {
        let pending = match self.engine.store().pending_signals(self.claim.run_id).await {
            Ok(pending) => pending,
            Err(error) => {
                tracing::warn!(run = %self.claim.run_id, %error, "cannot read the signals of a run");
                Vec::new()
            }
        };
        let mut requests = Vec::with_capacity(pending.len());
        for Signal { id, body, .. } in pending {
            if self.in_progress.contains(&id) {
                continue;
            }
            match self.prepare(body).await {
                Ok(request) => {
                    self.in_progress.insert(id);
                    requests.push((id, request));
                }
                Err(error) => tracing::warn!(run = %self.claim.run_id, %error, "cannot read the message of a signal"),
            }
        }
        requests
    }

    async fn prepare(&self, body: SignalBody) -> Result<RunRequest, StoreError> {
        Ok(match body {
            SignalBody::AnswerApproval { approval_id: approval, decision, input, remember, scope, author, .. } => {
                // Without a scope, a server of an earlier version stored it.
                let remember = remember.then(|| scope.unwrap_or(RememberScope::Tool));
                RunRequest::AnswerApproval { approval, decision, input, remember, author }
            }
            SignalBody::ForgetTool { tool } => RunRequest::ForgetTool { tool },
            SignalBody::Steer { message_id } => {
                let Claim { owner, room_id, .. } = &self.claim;
                let message = self.engine.store().message(owner, *room_id, message_id).await?;
                let folder = self.engine.room_folder(owner, *room_id).await?;
                let text = self.engine.place_attachments(owner, &folder, &message).await.ok();
                let attachments = self.engine.attached_files(&message);
                RunRequest::Steer { message, text, attachments }
            }
        })
    }

    pub(super) fn settled(&mut self, signals: &SettledSignals) {
        for (id, _) in signals.outcomes() {
            self.in_progress.remove(&id);
        }
    }
}

/// Signals that are settled in the next commit.
#[derive(Default)]
pub(crate) struct SettledSignals {
    outcomes: Vec<(SignalId, SignalOutcome)>,
    redirected: Vec<RedirectedMessage>,
}

/// A message that its run did not take, and the run that answers it instead.
struct RedirectedMessage {
    signal_id: SignalId,
    message_id: MessageId,
    run_id: RunId,
    queued: NewEvent,
}

impl SettledSignals {
    pub(super) fn settle(&mut self, signal: SignalId, outcome: SignalOutcome) {
        self.outcomes.push((signal, outcome));
    }

    /// Queues a run of the same agent for a message.
    pub(super) fn redirect(&mut self, journal: &RunJournal, signal_id: SignalId, message_id: MessageId) {
        let run_id = RunId::generate();
        let queued = NewEvent::new(RunQueued { message_id }).of_run(run_id, journal.agent_id());
        self.redirected.push(RedirectedMessage { signal_id, message_id, run_id, queued });
    }

    /// Redirects the messages that were sent to the run since its signals were read. Returns whether there are any.
    pub(super) fn redirect_unread(&mut self, journal: &RunJournal, pending: Vec<Signal>) -> bool {
        let before = self.redirected.len();
        for Signal { id, body, .. } in pending {
            if let SignalBody::Steer { message_id } = body
                && !self.outcomes().any(|(settled, _)| settled == id)
            {
                self.redirect(journal, id, message_id);
            }
        }
        self.redirected.len() > before
    }

    fn outcomes(&self) -> impl Iterator<Item = (SignalId, SignalOutcome)> {
        let redirected = self.redirected.iter().map(|message| (message.signal_id, SignalOutcome::Queued));
        self.outcomes.iter().copied().chain(redirected)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.redirected.is_empty()
    }

    /// The events of the runs that are queued.
    pub(super) fn events(&self) -> impl Iterator<Item = NewEvent> {
        self.redirected.iter().map(|message| message.queued.clone())
    }

    /// `first` is the index of the first of `events` in the commit.
    pub(super) fn changes(&self, journal: &RunJournal, first: usize) -> Vec<RowChange> {
        let run_id = journal.run_id();
        let settle = |(signal_id, outcome)| RowChange::SettleSignal { run_id, signal_id, outcome };
        let mut changes: Vec<RowChange> = self.outcomes().map(settle).collect();
        for (index, message) in (first..).zip(&self.redirected) {
            changes.push(RowChange::QueueRun {
                owner: journal.owner().clone(),
                run_id: message.run_id,
                agent_id: journal.agent_id(),
                message_id: message.message_id,
                place: None,
                seq: SeqRef::Event(index),
                cell: SeqRef::Event(index),
                claim: None,
            });
        }
        changes
    }
}
