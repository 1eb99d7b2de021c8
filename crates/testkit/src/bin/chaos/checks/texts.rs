//! Check 5: what an answer says is exactly what the provider sent, up to where it was cut.

use super::Room;
use crate::{expected, report::Check};
use domain::{
    event::{EventBody, EventType},
    fold::Answer,
    ids::{MessageId, RunId},
    message::{Part, ToolCall},
};
use std::collections::BTreeMap;

#[derive(Default)]
struct Said {
    answer: Answer,
    /// From `stream_end`.
    told: Option<(String, String)>,
    ends: usize,
    completed: bool,
    prompt: Option<String>,
}

fn call(part: &Part) -> Option<&ToolCall> {
    match part {
        Part::Tool(call) => Some(call),
        _ => None,
    }
}

pub fn check(rooms: &[Room]) -> Check {
    let mut check = Check::new("5 each answer is an exact prefix of what the provider sent, and whole when completed");
    let (mut whole, mut partial, mut unknown) = (0, 0, 0);
    for room in rooms {
        let mut prompts: BTreeMap<MessageId, String> = BTreeMap::new();
        let mut runs: BTreeMap<RunId, Said> = BTreeMap::new();
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
            let said = runs.entry(run).or_default();
            said.answer.apply(&body);
            said.completed |= event.kind == EventType::RunCompleted;
            match body {
                EventBody::RunQueued(queued) => said.prompt = prompts.get(&queued.message_id).cloned(),
                EventBody::StreamEnd(end) => {
                    said.ends += 1;
                    said.told = Some((end.response_text, end.thinking_text));
                }
                _ => {}
            }
        }
        for (run, said) in runs {
            let (text, thinking) = said.answer.texts();
            if said.answer.stream_id.is_some() {
                check.expect(said.ends == 1, || format!("run {run} began to speak and has {} stream_end", said.ends));
            }
            if let Some(told) = &said.told {
                check.expect(told.0 == text && told.1 == thinking, || {
                    format!("run {run}: stream_end differs from its deltas")
                });
            }
            let Some(prompt) = said.prompt else {
                check.faults.push(format!("run {run} answers a message that is not in the journal before it"));
                continue;
            };
            let Some(expected) = expected::answer(&prompt) else {
                unknown += 1;
                continue;
            };
            let fits = expected.text.starts_with(&text) && expected.thinking.starts_with(&thinking);
            check.expect(fits, || format!("run {run} to {prompt:?} said {text:?} and thought {thinking:?}"));
            let calls: Vec<&ToolCall> = said.answer.parts.iter().filter_map(call).collect();
            let is_asked_for = |made: &ToolCall| {
                let wanted =
                    expected.call.as_ref().filter(|wanted| wanted.name == made.name && wanted.input == made.input);
                wanted.is_some_and(|wanted| {
                    made.result.as_ref().is_none_or(|it| it.is_error || it.content == wanted.input)
                })
            };
            check.expect(calls.iter().all(|made| is_asked_for(made)), || {
                format!("run {run} to {prompt:?} called {calls:?}")
            });
            if said.completed {
                let done = calls.iter().filter(|made| made.result.is_some()).count();
                let wanted = usize::from(expected.call.is_some());
                check.expect(done == wanted, || {
                    format!("run {run} to {prompt:?} is completed with {done} of {wanted} calls")
                });
                whole += 1;
                let is_whole = expected.text == text && expected.thinking == thinking;
                check.expect(is_whole, || {
                    format!("run {run} to {prompt:?} is completed and said only {} bytes", text.len())
                });
            } else {
                partial += 1;
            }
        }
    }
    check.looked_at = format!("{whole} whole, {partial} cut short, {unknown} not foreseen");
    check
}
