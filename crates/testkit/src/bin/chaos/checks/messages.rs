//! Check 6: the folded message history agrees with the events.

use super::RoomRecord;
use crate::report::ChaosCheck;
use domain::{
    event::{EventBody, EventType},
    fold::Answer,
    ids::{MessageId, RunId},
    message::{Message, MessageStatus, Part},
    position::Seq,
};
use std::collections::BTreeMap;

struct FoldedMessage {
    seq: Seq,
    text: String,
    thinking: String,
    parts: Vec<Part>,
    status: MessageStatus,
    run: Option<RunId>,
}

pub fn check(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("6 folded messages agree with the events");
    let mut count = 0;
    for room in rooms {
        let id = room.ledger.room;
        let head = room.journal.last().map_or(0, |event| event.seq);
        check.expect(room.messages_at == head, || format!("{id}: messages at {}, journal at {head}", room.messages_at));
        check.expect(room.messages.is_sorted_by(|a, b| a.seq < b.seq), || format!("{id}: messages are not in order"));
        let mut folded = fold(room);
        for message in &room.messages {
            count += 1;
            match folded.remove(&message.id) {
                Some(folded) => compare(&mut check, message, &folded),
                None => check.faults.push(format!("{id}: message {} has no events", message.id)),
            }
        }
        check.faults.extend(folded.keys().map(|message| format!("{id}: message {message} is missing in the history")));
    }
    check.examined = format!("{count} messages");
    check
}

fn compare(check: &mut ChaosCheck, message: &Message, folded: &FoldedMessage) {
    let id = message.id;
    check
        .expect(message.seq == folded.seq, || format!("message {id} at {}, its events at {}", message.seq, folded.seq));
    check.expect(message.text == folded.text, || {
        format!("message {id} has text {:?}, its events have {:?}", message.text, folded.text)
    });
    check.expect(message.thinking == folded.thinking, || {
        format!("the thinking of message {id} differs from its events")
    });
    check.expect(message.run_id == folded.run, || {
        format!("message {id} belongs to run {:?}, its events to {:?}", message.run_id, folded.run)
    });
    check.expect(message.status == folded.status, || {
        format!("message {id} is {:?}, its events say {:?}", message.status, folded.status)
    });
    let tools = |parts: &[Part]| parts.iter().filter(|part| matches!(part, Part::Tool(_))).cloned().collect::<Vec<_>>();
    check.expect(tools(&message.parts) == tools(&folded.parts), || {
        format!("the tool calls of message {id} differ from its events")
    });
}

/// Folds the journal into messages. An answer appears in the history once its stream has started.
fn fold(room: &RoomRecord) -> BTreeMap<MessageId, FoldedMessage> {
    let mut folded = BTreeMap::new();
    let mut answers: BTreeMap<RunId, (Seq, Answer)> = BTreeMap::new();
    for event in &room.journal {
        let Ok(body) = event.body() else { continue };
        if let EventBody::MessagePosted(posted) = &body {
            let posted = posted.clone();
            let parts = Vec::new();
            let (seq, text, status) = (event.seq, posted.text, MessageStatus::Complete);
            folded.insert(
                posted.message_id,
                FoldedMessage { seq, text, thinking: String::new(), parts, status, run: None },
            );
        }
        let Some(run) = event.run_id else { continue };
        if let EventBody::StreamStart(_) = &body {
            answers.insert(run, (event.seq, Answer::default()));
        }
        if let Some((_, answer)) = answers.get_mut(&run) {
            answer.apply(&body);
        }
        if event.kind.ends_a_run()
            && let Some((seq, answer)) = answers.remove(&run)
            && let Some(id) = answer.stream_id
        {
            let (text, thinking) = answer.texts();
            let is_whole = event.kind == EventType::RunCompleted;
            let status = if is_whole { MessageStatus::Complete } else { MessageStatus::Partial };
            folded.insert(id, FoldedMessage { seq, text, thinking, parts: answer.parts, status, run: Some(run) });
        }
    }
    folded
}
