//! Check 5: an answer is exactly what the provider sent, up to the point where it was cut.

use super::RoomRecord;
use crate::{expected, report::ChaosCheck};
use domain::{
    event::{EventBody, EventType},
    fold::Answer,
    ids::{MessageId, RunId},
    message::{Part, ToolCall},
};
use std::collections::BTreeMap;

#[derive(Default)]
struct RunTexts {
    answer: Answer,
    /// The text and thinking of `stream_end`.
    stream_end: Option<(String, String)>,
    ends: usize,
    completed: bool,
    prompt: Option<String>,
    /// The messages that the run took into its answer.
    steered: Vec<String>,
}

fn call(part: &Part) -> Option<&ToolCall> {
    match part {
        Part::Tool(call) => Some(call),
        _ => None,
    }
}

pub fn check(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check =
        ChaosCheck::new("5 each answer is an exact prefix of what the provider sent, and whole when completed");
    let (mut whole, mut partial, mut unknown) = (0, 0, 0);
    for room in rooms {
        let mut prompts: BTreeMap<MessageId, String> = BTreeMap::new();
        let mut runs: BTreeMap<RunId, RunTexts> = BTreeMap::new();
        for event in &room.journal {
            let body = match event.body() {
                Ok(body) => body,
                Err(error) => {
                    check.faults.push(error.to_string());
                    continue;
                }
            };
            if let EventBody::MessagePosted(posted) = &body {
                prompts.insert(posted.message_id, posted.text.clone());
            }
            let Some(run) = event.run_id else { continue };
            let run_texts = runs.entry(run).or_default();
            run_texts.answer.apply(&body);
            run_texts.completed |= event.kind == EventType::RunCompleted;
            match body {
                EventBody::RunQueued(queued) => run_texts.prompt = prompts.get(&queued.message_id).cloned(),
                EventBody::Status(status) => {
                    let taken = status.message_id.and_then(|message| prompts.get(&message));
                    run_texts.steered.extend(taken.cloned());
                }
                EventBody::StreamEnd(end) => {
                    run_texts.ends += 1;
                    run_texts.stream_end = Some((end.response_text, end.thinking_text));
                }
                _ => {}
            }
        }
        for (run, run_texts) in runs {
            let (text, thinking) = run_texts.answer.texts();
            if run_texts.answer.stream_id.is_some() {
                check.expect(run_texts.ends == 1, || {
                    format!("run {run} started a stream and has {} stream_end events", run_texts.ends)
                });
            }
            if let Some(told) = &run_texts.stream_end {
                check.expect(told.0 == text && told.1 == thinking, || {
                    format!("run {run}: stream_end differs from its deltas")
                });
            }
            // The provider repeats such a message inside its answer.
            let text =
                run_texts.steered.iter().fold(text, |text, it| text.replacen(&format!(" [steered: {it}]"), "", 1));
            let Some(prompt) = run_texts.prompt else {
                check.faults.push(format!("run {run} answers a message that does not precede it in the journal"));
                continue;
            };
            let Some(expected) = expected::answer(&prompt) else {
                unknown += 1;
                continue;
            };
            let fits = expected.text.starts_with(&text) && expected.thinking.starts_with(&thinking);
            check.expect(fits, || format!("run {run} to {prompt:?} has text {text:?} and thinking {thinking:?}"));
            let calls: Vec<&ToolCall> = run_texts.answer.parts.iter().filter_map(call).collect();
            let is_expected_call = |made: &ToolCall| {
                let wanted =
                    expected.call.as_ref().filter(|wanted| wanted.name == made.name && wanted.input == made.input);
                wanted.is_some_and(|wanted| {
                    made.result.as_ref().is_none_or(|it| it.is_error || it.content == wanted.input)
                })
            };
            check.expect(calls.iter().all(|made| is_expected_call(made)), || {
                format!("run {run} to {prompt:?} called {calls:?}")
            });
            if run_texts.completed {
                let done = calls.iter().filter(|made| made.result.is_some()).count();
                let wanted = usize::from(expected.call.is_some());
                check.expect(done == wanted, || {
                    format!("run {run} to {prompt:?} is completed with {done} of {wanted} calls")
                });
                whole += 1;
                let is_whole = expected.text == text && expected.thinking == thinking;
                check.expect(is_whole, || {
                    format!("run {run} to {prompt:?} is completed but has only {} bytes of text", text.len())
                });
            } else {
                partial += 1;
            }
        }
    }
    check.examined = format!("{whole} complete, {partial} partial, {unknown} unknown");
    check
}
