//! Plays steps into the channel. Every wait (for time, channel capacity or an answer) also handles commands, so that an
//! interrupt takes effect immediately.

use super::directive::{self, ScriptStep, WORD_PACE};
use crate::{
    ProviderEvent, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    host_tools::{CallOrigin, HostToolAgent, HostToolCalls, HostToolEvent},
    turn_port::{PortEvent, TurnPort},
};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    prices::SCRIPTED,
    run::RunError,
    usage::{Cost, Usage},
};
use serde_json::{Map, Value, json};
use std::{collections::VecDeque, time::Duration};
use tokio::{
    task::coop,
    time::{Instant, sleep_until},
};

const FLOOD_DELTA_BYTES: usize = 1024;

pub async fn turn(request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let TurnRequest { run_id, workspace, prompt, .. } = request;
    let mut player = ScriptPlayer {
        host_calls: HostToolCalls::new(HostToolAgent::on_model_api(workspace), run_id),
        port: TurnPort::new(channel),
        steered: VecDeque::new(),
        due: Instant::now(),
        deltas: 0,
        has_usage: false,
    };
    let end = player.play(&prompt).await.unwrap_or_else(|end| end);
    player.host_calls.shut_down().await;
    TurnOutcome::from_end(end)
}

struct ScriptPlayer {
    port: TurnPort,
    host_calls: HostToolCalls<String>,
    /// Steered messages to be echoed at the next pause.
    steered: VecDeque<(MessageId, String)>,
    /// The planned time of the last timed event. Delays are added to it, so that lateness does not accumulate.
    due: Instant,
    /// The number of text and thinking deltas so far.
    deltas: u64,
    /// Whether a script has reported usage itself.
    has_usage: bool,
}

impl ScriptPlayer {
    /// `Err` ends the turn at once.
    async fn play(&mut self, prompt: &str) -> Result<TurnEnd, TurnEnd> {
        self.send(TurnEvent::ModelCall.into()).await?;
        let steps =
            directive::parse(prompt).map_err(|problem| TurnEnd::Failed(RunError::new("bad_directive", problem)))?;
        let mut end = TurnEnd::Completed;
        for step in steps {
            match step {
                ScriptStep::Skip => end = TurnEnd::Skipped,
                step => self.step(step).await?,
            }
        }
        self.take_steered().await?;
        if !self.has_usage {
            let words = u64::try_from(prompt.split_whitespace().count()).unwrap_or(u64::MAX);
            let usage = Usage { input_tokens: words, output_tokens: self.deltas, ..Usage::default() };
            let event = TurnEvent::Usage { usage, model: Some(SCRIPTED.to_owned()), cost: Some(Cost::ZERO) };
            self.send(event.into()).await?;
        }
        Ok(end)
    }

    async fn step(&mut self, step: ScriptStep) -> Result<(), TurnEnd> {
        match step {
            ScriptStep::Wait(duration) => self.wait(duration).await,
            ScriptStep::Say(text) => self.words(&text, |delta| TurnEvent::Text { delta, item: None }).await,
            ScriptStep::Think(text) => self.words(&text, |delta| TurnEvent::Thinking { delta, item: None }).await,
            ScriptStep::Count { to, pace } => self.count(to, pace).await,
            ScriptStep::Flood { bytes } => self.flood(bytes).await,
            ScriptStep::Send(event) => {
                self.has_usage |= matches!(event, TurnEvent::Usage { .. });
                self.report(event).await
            }
            ScriptStep::Ask { tool_use_id, name, input, is_question, says_decision: aloud } => {
                let id = ApprovalId::generate();
                let (tool, given) = (tool_use_id.clone(), input.clone());
                self.report(TurnEvent::Approval { id, tool_use_id: tool, name, input, is_question }).await?;
                self.decided(id, tool_use_id, given, aloud).await
            }
            ScriptStep::CallHostTool { name, calls } => self.call_host_tool(&name, calls).await,
            ScriptStep::Fail(error) => Err(TurnEnd::Failed(error)),
            ScriptStep::Skip => Err(TurnEnd::Skipped),
            ScriptStep::Hang { linger } => self.hang(linger).await,
        }
    }

    async fn words(&mut self, text: &str, event: fn(String) -> TurnEvent) -> Result<(), TurnEnd> {
        for (index, word) in words(text).enumerate() {
            if index > 0 {
                self.wait(WORD_PACE).await?;
            }
            self.report(event(word.to_owned())).await?;
        }
        Ok(())
    }

    async fn count(&mut self, to: u32, pace: Duration) -> Result<(), TurnEnd> {
        self.say("1".to_owned()).await?;
        for number in 2..=to {
            self.wait(pace).await?;
            self.say(format!(" {number}")).await?;
        }
        Ok(())
    }

    async fn flood(&mut self, bytes: u64) -> Result<(), TurnEnd> {
        let line = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['.', '\n']);
        let block: String = line.cycle().take(FLOOD_DELTA_BYTES).collect();
        let mut left = bytes;
        while left > 0 {
            self.take_steered().await?;
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(FLOOD_DELTA_BYTES);
            self.say(block[..size].to_owned()).await?;
            left -= size as u64;
        }
        Ok(())
    }

    /// Waits for the answer to an approval, and reports the result.
    async fn decided(
        &mut self,
        id: ApprovalId,
        tool_use_id: Option<String>,
        input: Value,
        aloud: bool,
    ) -> Result<(), TurnEnd> {
        let (decision, changed) = self.answer(id).await?;
        // The time a person takes is not part of the script: later delays count from here.
        self.due = Instant::now();
        let word = match decision {
            Decision::Allow => "allowed",
            Decision::Deny => "denied",
            Decision::Expired => "expired",
        };
        if let Some(id) = tool_use_id {
            let allowed = decision == Decision::Allow;
            let content = if allowed { changed.unwrap_or(input) } else { Value::from(word) };
            self.report(TurnEvent::ToolResult { id, content, is_error: !allowed }).await?;
        }
        if aloud { self.say(word.to_owned()).await } else { Ok(()) }
    }

    async fn answer(&mut self, id: ApprovalId) -> Result<(Decision, Option<Value>), TurnEnd> {
        // Without a sender of commands, nobody can answer.
        while !self.port.commands_ended() {
            match self.port.next().await {
                PortEvent::ResolveApproval { approval, decision, input } if approval == id => {
                    return Ok((decision, input));
                }
                event => self.handle(event)?,
            }
            self.take_steered().await?;
        }
        Err(TurnEnd::Stopped)
    }

    /// Makes all calls at once, and says each result when it is there.
    async fn call_host_tool(&mut self, name: &str, calls: Vec<Map<String, Value>>) -> Result<(), TurnEnd> {
        let mut open = calls.len();
        for (number, arguments) in (1..).zip(calls) {
            let (id, input) = (format!("call_{number}"), Value::Object(arguments.clone()));
            self.report(TurnEvent::ToolUse { id: id.clone(), name: name.to_owned(), input }).await?;
            let origin = CallOrigin { tool_use_id: Some(id.clone()), raw: None };
            self.host_calls.start(id, origin, name.to_owned(), arguments);
        }
        while open > 0 {
            let event = tokio::select! {
                biased;
                event = self.port.next() => {
                    match event {
                        PortEvent::ResolveApproval { approval, decision, input } => {
                            // Only its questions are open now.
                            self.host_calls.answer(approval, decision, input).unwrap_or_default();
                        }
                        event => self.handle(event)?,
                    }
                    continue;
                }
                event = self.host_calls.next() => event,
            };
            match event {
                HostToolEvent::Report(event) => self.send(event).await?,
                HostToolEvent::Ended { reply_to: id, outcome } => {
                    open -= 1;
                    self.due = Instant::now();
                    let content = Value::from(outcome.text.clone());
                    self.report(TurnEvent::ToolResult { id, content, is_error: outcome.is_error }).await?;
                    self.say(outcome.text).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends nothing until it is stopped, and then takes `linger` to stop.
    async fn hang(&mut self, linger: Duration) -> Result<(), TurnEnd> {
        loop {
            let event = self.port.next().await;
            if self.handle(event).is_err() {
                break;
            }
            self.take_steered().await?;
        }
        if !linger.is_zero() {
            // Like a program that has not handled the signal yet.
            self.port.send(TurnEvent::Text { delta: " too late".to_owned(), item: None });
            tokio::select! {
                () = tokio::time::sleep(linger) => {}
                () = self.port.closed() => {}
            }
        }
        Err(TurnEnd::Stopped)
    }

    async fn wait(&mut self, duration: Duration) -> Result<(), TurnEnd> {
        self.due += duration;
        self.take_steered().await?;
        if duration.is_zero() {
            return Ok(());
        }
        while self.due > Instant::now() {
            tokio::select! {
                biased;
                event = self.port.next() => self.handle(event)?,
                () = sleep_until(self.due) => break,
            }
            self.take_steered().await?;
        }
        Ok(())
    }

    /// Echoes the steered messages.
    async fn take_steered(&mut self) -> Result<(), TurnEnd> {
        while let Some((message, text)) = self.steered.pop_front() {
            self.send(TurnEvent::Steered { message, taken: true }.into()).await?;
            self.say(format!(" [steered: {text}]")).await?;
        }
        Ok(())
    }

    async fn say(&mut self, delta: String) -> Result<(), TurnEnd> {
        self.deltas += 1;
        let event = TurnEvent::Text { delta, item: None };
        let raw = raw(&event, self.port.keeps_raw());
        self.send(ProviderEvent { event, raw }).await
    }

    async fn report(&mut self, event: TurnEvent) -> Result<(), TurnEnd> {
        self.deltas += u64::from(matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. }));
        let raw = raw(&event, self.port.keeps_raw());
        self.send(ProviderEvent { event, raw }).await
    }

    /// Waits until the engine has received the event: a script does not run ahead of its reader.
    async fn send(&mut self, reported: ProviderEvent) -> Result<(), TurnEnd> {
        while let Some(event) = self.port.try_next() {
            self.handle(event)?;
        }
        if self.port.is_closed() {
            return Err(TurnEnd::Stopped);
        }
        self.port.send(reported);
        while !self.port.is_flushed() {
            let event = self.port.next().await;
            self.handle(event)?;
        }
        // Sending does not yield; without this a flood with a fast reader would never release its thread.
        coop::consume_budget().await;
        Ok(())
    }

    fn handle(&mut self, event: PortEvent) -> Result<(), TurnEnd> {
        match event {
            PortEvent::Stop => return Err(TurnEnd::Stopped),
            PortEvent::Steer { message, text, .. } => self.steered.push_back((message, text)),
            // Too late: the approval is over.
            PortEvent::ResolveApproval { .. } | PortEvent::CommandsEnded | PortEvent::Sent => {}
        }
        Ok(())
    }
}

/// The raw message that a real provider would have sent. Deltas have one only if the room keeps it: there are too many.
fn raw(event: &TurnEvent, keeps_raw: bool) -> Option<String> {
    let sent = match event {
        TurnEvent::ToolUse { id, name, input } => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        TurnEvent::ToolResult { id, content, is_error } => {
            json!({"type": "tool_result", "id": id, "content": content, "is_error": is_error})
        }
        TurnEvent::Approval { id, tool_use_id, name, .. } => {
            json!({"type": "approval", "id": id, "tool_use_id": tool_use_id, "name": name})
        }
        TurnEvent::Text { delta, .. } if keeps_raw => json!({"type": "text", "delta": delta}),
        TurnEvent::Thinking { delta, .. } if keeps_raw => json!({"type": "thinking", "delta": delta}),
        _ => return None,
    };
    Some(sent.to_string())
}

/// Splits a text into words, each with the whitespace before it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace())?;
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        let (head, tail) = rest.split_at(end);
        // Trailing whitespace belongs to the last word.
        let (head, tail) = if tail.trim_start().is_empty() { (rest, "") } else { (head, tail) };
        rest = tail;
        Some(head)
    })
}
