//! The messages of a journal, folded by `domain::fold` one event at a time.

use domain::{
    event::{Event, EventBody},
    fold::Answer,
    ids::{AgentId, RunId},
    message::{Author, Message, MessageStatus, Part, join_texts},
    name::Name,
    usage::{Cost, Usage},
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct RoomFold {
    names: BTreeMap<AgentId, Name>,
    answers: BTreeMap<RunId, (Answer, Option<Message>)>,
}

/// What one event has changed.
#[derive(Serialize, Default)]
pub struct FoldChange {
    /// The whole message after the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// What the run has used so far.
#[derive(Serialize)]
pub struct Spent {
    usage: Usage,
    cost: Option<Cost>,
    model: Option<String>,
}

impl RoomFold {
    pub fn apply(&mut self, event: &Event) -> FoldChange {
        let body = event.body().unwrap();
        if let EventBody::ParticipantJoined(joined) = &body {
            self.names.insert(joined.agent_id, joined.name.clone());
        }
        match (body, event.run_id) {
            (EventBody::MessagePosted(posted), _) => {
                let message = Message {
                    id: posted.message_id,
                    room_id: event.room_id,
                    seq: event.seq,
                    author: posted.author,
                    run_id: None,
                    status: MessageStatus::Complete,
                    text: posted.text.clone(),
                    thinking: String::new(),
                    parts: vec![Part::Text { text: posted.text, item: None }],
                    attachments: posted.attachments,
                    created_at: event.created_at,
                };
                FoldChange { message: Some(message), spent: None }
            }
            (EventBody::MessageCopied(copied), _) => {
                let (text, thinking) = join_texts(&copied.parts);
                let message = Message {
                    id: copied.message_id,
                    room_id: event.room_id,
                    seq: event.seq,
                    author: copied.author,
                    run_id: None,
                    status: copied.status,
                    text,
                    thinking,
                    parts: copied.parts,
                    attachments: copied.attachments,
                    created_at: copied.written_at,
                };
                FoldChange { message: Some(message), spent: None }
            }
            (body, Some(run_id)) => self.apply_to_run(run_id, event, &body),
            (_, None) => FoldChange::default(),
        }
    }

    fn apply_to_run(&mut self, run_id: RunId, event: &Event, body: &EventBody) -> FoldChange {
        let (answer, message) = self.answers.entry(run_id).or_default();
        answer.apply(body);
        let spent = matches!(body, EventBody::UsageReported(_)).then(|| Spent {
            usage: answer.usage,
            cost: answer.cost,
            model: answer.model.clone(),
        });
        let before = message.clone();
        if let EventBody::StreamStart(start) = body {
            let agent_id = event.agent_id.unwrap();
            *message = Some(Message {
                id: start.stream_id,
                room_id: event.room_id,
                seq: event.seq,
                author: Author::Agent { id: agent_id, name: self.names[&agent_id].clone() },
                run_id: Some(run_id),
                status: MessageStatus::Streaming,
                text: String::new(),
                thinking: String::new(),
                parts: Vec::new(),
                attachments: Vec::new(),
                created_at: event.created_at,
            });
        }
        if let Some(message) = message {
            (message.text, message.thinking) = answer.texts();
            message.parts.clone_from(&answer.parts);
            message.status = match body {
                EventBody::RunCompleted(_) => MessageStatus::Complete,
                body if body.kind().ends_a_run() => MessageStatus::Partial,
                _ => message.status,
            };
        }
        FoldChange { message: message.clone().filter(|after| before.as_ref() != Some(after)), spent }
    }
}
