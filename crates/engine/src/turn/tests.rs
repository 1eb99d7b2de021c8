//! Inputs in, effects out.

use super::{Effect, Entry, Finish, Input, Machine, Setting, Why, coalesce};
use domain::{
    agent::ToolPolicy,
    event::{Decision, EventBody, EventType, Interruption},
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::MessageStatus,
    run::{RunError, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

fn setting(limits: Limits) -> Setting {
    Setting {
        stream_id: MessageId::generate(),
        limits,
        tools: ToolPolicy { allow: vec!["read*".into()], ask: Vec::new(), deny: vec!["drop*".into()] },
        remembered: BTreeSet::new(),
        model: None,
        started_at: Timestamp::from_millis(1_000),
    }
}

struct Play {
    machine: Machine,
    effects: Vec<Effect>,
}

impl Play {
    fn new() -> Self {
        Self::within(Limits::default())
    }

    fn within(limits: Limits) -> Self {
        Self { machine: Machine::new(setting(limits)), effects: Vec::new() }
    }

    fn input(mut self, input: Input) -> Self {
        self.machine.on(input, Timestamp::from_millis(3_500), &mut self.effects);
        self
    }

    fn says(self, event: TurnEvent) -> Self {
        self.input(Input::Provider(event.into()))
    }

    fn text(self, delta: &str) -> Self {
        self.says(TurnEvent::Text { delta: delta.into(), item: None })
    }

    fn stop(self, why: Why) -> Self {
        self.input(Input::Stop(why))
    }

    fn ends(self, end: TurnEnd) -> Self {
        self.input(Input::Ended(TurnOutcome::of(end)))
    }

    fn kinds(&self) -> Vec<EventType> {
        self.bodies().iter().map(EventBody::kind).collect()
    }

    fn bodies(&self) -> Vec<EventBody> {
        let appended = self.effects.iter().filter_map(|effect| match effect {
            Effect::Append(entry) => Some(entry.body.clone()),
            Effect::End(finish) => Some(finish.terminal.clone()),
            _ => None,
        });
        appended.collect()
    }

    fn finish(&self) -> &Finish {
        let ends: Vec<&Finish> = self
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::End(finish) => Some(finish),
                _ => None,
            })
            .collect();
        assert_eq!(ends.len(), 1, "exactly one end");
        ends[0]
    }

    fn interrupts(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Tell(TurnCommand::Interrupt))).count()
    }

    fn response(&self) -> String {
        let end = self.bodies().into_iter().find_map(|body| match body {
            EventBody::StreamEnd(end) => Some(end.response_text),
            _ => None,
        });
        end.unwrap()
    }
}

#[test]
fn a_whole_answer_completes() {
    let play = Play::new().says(TurnEvent::ModelCall).text("a").text("b").ends(TurnEnd::Completed);
    use EventType as T;
    assert_eq!(play.kinds(), [T::ContentDelta, T::ContentDelta, T::StreamEnd, T::RunCompleted]);
    assert_eq!(play.response(), "ab");
    assert_eq!((play.finish().status, play.finish().message), (RunStatus::Completed, MessageStatus::Complete));
    assert_eq!(play.finish().duration_ms, 2_500);
}

#[test]
fn invariant_03_one_end_nothing_follows_it() {
    let play = Play::new().text("a").ends(TurnEnd::Completed).text("late").stop(Why::Cancelled).ends(TurnEnd::Stopped);
    assert_eq!(play.finish().status, RunStatus::Completed);
    assert_eq!(play.kinds().last(), Some(&EventType::RunCompleted));
    assert_eq!(play.interrupts(), 0);
}

#[test]
fn invariant_06_partial_once_text_after_the_stop_is_not_part_of_it() {
    let play = Play::new()
        .text("kept ")
        .stop(Why::Interrupted(Interruption::NewMessage))
        .text("dropped")
        .stop(Why::Cancelled)
        .ends(TurnEnd::Completed);
    assert_eq!(play.response(), "kept ");
    assert_eq!(play.interrupts(), 1, "told once; the first reason stands");
    assert_eq!((play.finish().status, play.finish().message), (RunStatus::Interrupted, MessageStatus::Partial));
    assert_eq!(play.kinds().iter().filter(|kind| **kind == EventType::StreamEnd).count(), 1);
}

#[test]
fn invariant_12_no_blind_repeat_an_open_call_is_recorded_as_unknown() {
    let tool = TurnEvent::ToolUse { id: "t1".into(), name: "deploy".into(), input: json!({}) };
    let play = Play::new().says(tool).stop(Why::Cancelled).ends(TurnEnd::Stopped);
    let result = play.bodies().into_iter().find_map(|body| match body {
        EventBody::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert!(result.is_error && result.content.as_str().unwrap().starts_with("outcome unknown"));
    assert_eq!(play.finish().status, RunStatus::Cancelled);
}

#[test]
fn a_tool_that_ends_while_stopping_is_recorded_as_it_ended() {
    let tool = TurnEvent::ToolUse { id: "t1".into(), name: "deploy".into(), input: json!({}) };
    let done = TurnEvent::ToolResult { id: "t1".into(), content: json!("ok"), is_error: false };
    let play = Play::new().says(tool).stop(Why::Cancelled).says(done).ends(TurnEnd::Stopped);
    assert_eq!(play.kinds().iter().filter(|kind| **kind == EventType::ToolResult).count(), 1);
}

#[test]
fn invariant_14_limits_stop_a_turn() {
    let limits = Limits { turns: 2, output_bytes: 10, ..Limits::default() };
    let calls = |count: usize| {
        (0..count).fold(Play::within(limits), |play, _| play.says(TurnEvent::ModelCall)).ends(TurnEnd::Completed)
    };
    assert_eq!(calls(2).finish().status, RunStatus::Completed);
    let three = calls(3);
    assert_eq!(three.finish().error.as_ref().unwrap().code, "limit_turns");
    let long = Play::within(limits).text("0123456789").text("x").text("never").ends(TurnEnd::Stopped);
    assert_eq!(long.finish().error.as_ref().unwrap().code, "limit_output_bytes");
    assert_eq!(long.response(), "0123456789x", "what crossed the line is kept, what came after is not");
    let codes = [
        (Limit::Wall, "limit_wall"),
        (Limit::FirstByte, "limit_first_byte"),
        (Limit::Idle, "limit_idle"),
        (Limit::Tool, "limit_tool"),
    ];
    for (limit, code) in codes {
        let play = Play::new().stop(Why::Limit(limit)).ends(TurnEnd::Stopped);
        assert_eq!(play.finish().error.as_ref().unwrap().code, code);
    }
}

#[test]
fn failure_is_told_as_an_error_and_ends_the_run() {
    let play = Play::new().text("so far").ends(TurnEnd::Failed(RunError::new("overloaded", "try later")));
    use EventType as T;
    assert_eq!(play.kinds(), [T::ContentDelta, T::StreamEnd, T::ErrorReported, T::RunFailed]);
    assert_eq!(play.finish().message, MessageStatus::Partial);
}

fn asks(name: &str, is_question: bool) -> TurnEvent {
    let id = ApprovalId::generate();
    TurnEvent::Approval { id, tool_use_id: None, name: name.into(), input: json!({}), is_question }
}

/// What the provider was told about its approvals.
fn told(play: &Play) -> Vec<Decision> {
    let decisions = play.effects.iter().filter_map(|effect| match effect {
        Effect::Tell(TurnCommand::Answer { decision, .. }) => Some(*decision),
        _ => None,
    });
    decisions.collect()
}

/// What the run became, one after the other.
fn statuses(play: &Play) -> Vec<RunStatus> {
    let statuses = play.effects.iter().filter_map(|effect| match effect {
        Effect::Become(status) => Some(*status),
        _ => None,
    });
    statuses.collect()
}

impl Play {
    /// Answers the approval that runs out first.
    fn answers(self, decision: Decision, remember: bool) -> Self {
        let (approval, _) = self.machine.approval_deadline().unwrap();
        self.input(Input::Answer { approval, decision, input: None, remember })
    }

    fn remembers(&self) -> Vec<&str> {
        let tools = self.effects.iter().filter_map(|effect| match effect {
            Effect::RememberTool(tool) => Some(tool.as_str()),
            _ => None,
        });
        tools.collect()
    }

    fn steered(&self) -> Vec<(MessageId, bool)> {
        let steered = self.effects.iter().filter_map(|effect| match effect {
            Effect::Steered { message, taken } => Some((*message, *taken)),
            _ => None,
        });
        steered.collect()
    }
}

#[test]
fn approvals_ask_or_follow_the_policy() {
    assert_eq!(told(&Play::new().says(asks("read_file", false))), [Decision::Allow]);
    assert_eq!(told(&Play::new().says(asks("drop_table", false))), [Decision::Deny]);
    let asked = Play::new().says(asks("write_file", false));
    assert!(told(&asked).is_empty());
    let (id, deadline) = asked.machine.approval_deadline().unwrap();
    assert_eq!(deadline, Timestamp::from_millis(3_500) + Duration::from_secs(600));
    let answered = asked.input(Input::Answer { approval: id, decision: Decision::Allow, input: None, remember: false });
    assert_eq!(told(&answered), [Decision::Allow]);
    assert!(answered.machine.approval_deadline().is_none());
    assert_eq!(statuses(&answered), [RunStatus::WaitingForApproval, RunStatus::Running]);
}

#[test]
fn an_approval_that_is_withdrawn_is_no_longer_waited_for() {
    let play = Play::new().says(asks("write_file", false)).says(asks("write_file", false));
    let (first, _) = play.machine.approval_deadline().unwrap();
    let play = play.says(TurnEvent::Withdrawn { id: first });
    assert!(!play.machine.is_waiting_for(first));
    let (second, _) = play.machine.approval_deadline().unwrap();
    assert_eq!(statuses(&play).last(), Some(&RunStatus::WaitingForApproval), "for the other");
    let play = play.says(TurnEvent::Withdrawn { id: second });
    assert_eq!(statuses(&play).last(), Some(&RunStatus::Running));
    assert!(play.machine.approval_deadline().is_none());
    // It is over: neither once more, nor an answer that comes too late, nor the end has anything to add.
    let play = play.says(TurnEvent::Withdrawn { id: second });
    let late = Input::Answer { approval: second, decision: Decision::Allow, input: None, remember: true };
    let play = play.input(late).ends(TurnEnd::Completed);
    let resolved = play.bodies().into_iter().filter_map(|body| match body {
        EventBody::ApprovalResolved(e) => Some((e.approval_id, e.decision, e.remember)),
        _ => None,
    });
    let expired = |id| (id, Decision::Expired, false);
    assert_eq!(resolved.collect::<Vec<_>>(), [expired(first), expired(second)]);
    assert!(told(&play).is_empty() && play.remembers().is_empty());
}

#[test]
fn what_is_withdrawn_while_a_turn_stops_ends_with_it() {
    let play = Play::new().says(asks("write_file", false));
    let (id, _) = play.machine.approval_deadline().unwrap();
    let play = play.stop(Why::Cancelled).says(TurnEvent::Withdrawn { id }).ends(TurnEnd::Stopped);
    assert_eq!(play.kinds().iter().filter(|kind| **kind == EventType::ApprovalResolved).count(), 1);
    assert_eq!(statuses(&play), [RunStatus::WaitingForApproval], "a run that stops does not run again");
}

#[test]
fn a_question_is_for_a_person_whatever_is_allowed() {
    let asked = Play::new().says(asks("read_mind", true));
    assert!(told(&asked).is_empty(), "the policy allows read*");
    let requested = asked.bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalRequested(requested) => Some(requested),
        _ => None,
    });
    assert!(requested.unwrap().is_question);
    let answered = asked.answers(Decision::Allow, true);
    assert_eq!((told(&answered), answered.remembers()), (vec![Decision::Allow], vec![]), "nor is it remembered");
    assert_eq!(told(&answered.says(asks("read_mind", true))), [Decision::Allow], "it is asked anew");
    assert_eq!(told(&Play::new().says(asks("drop_hint", true))), [Decision::Deny], "what is denied is denied");
}

#[test]
fn a_remembered_tool_is_not_asked_about_again_until_it_is_forgotten() {
    let play = Play::new().says(asks("write", false)).answers(Decision::Allow, true);
    assert_eq!(play.remembers(), ["write"]);
    let resolved = play.bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalResolved(resolved) => Some(resolved),
        _ => None,
    });
    assert!(resolved.unwrap().remember);
    let play = play.says(asks("write", false));
    assert_eq!(told(&play), [Decision::Allow, Decision::Allow]);
    let play = play.says(asks("write_more", false));
    assert!(play.machine.approval_deadline().is_some(), "a name, not a pattern");
    let play = play.answers(Decision::Deny, true);
    assert_eq!(play.remembers(), ["write"], "a no is not remembered");
    let play = play.input(Input::Forget { tool: "write".into() }).says(asks("write", false));
    assert!(play.machine.approval_deadline().is_some());

    let mut setting = setting(Limits::default());
    setting.remembered = ["write".to_owned(), "drop_table".to_owned()].into();
    let play = Play { machine: Machine::new(setting), effects: Vec::new() };
    let play = play.says(asks("write", false)).says(asks("drop_table", false));
    assert_eq!(told(&play), [Decision::Allow, Decision::Deny], "what is denied stays denied");
}

#[test]
fn a_message_is_handed_to_the_provider_and_settled_once() {
    let (one, two, other) = (MessageId::generate(), MessageId::generate(), MessageId::generate());
    let steer = |message| Input::Steer { message, text: "left".into() };
    let steered = |message, taken| TurnEvent::Steered { message, taken };
    let play = Play::new().input(steer(one)).input(steer(two));
    let handed = play.effects.iter().filter(|effect| matches!(effect, Effect::Tell(TurnCommand::Steer { .. }))).count();
    assert_eq!((handed, play.steered()), (2, vec![]));
    let play =
        play.says(steered(other, true)).says(steered(two, false)).says(steered(one, true)).says(steered(one, true));
    assert_eq!(play.steered(), [(two, false), (one, true)]);
    let told: Vec<_> = play
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            EventBody::Status(status) => Some((status.status, status.message_id)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [("steered".to_owned(), Some(one))]);
}

#[test]
fn a_message_that_nobody_took_is_given_back() {
    let (one, two) = (MessageId::generate(), MessageId::generate());
    let steer = |message| Input::Steer { message, text: "left".into() };
    let play = Play::new().input(steer(one)).ends(TurnEnd::Completed);
    assert_eq!(play.steered(), [(one, false)], "the turn ended without a word on it");
    let play = Play::new().input(steer(one)).stop(Why::Cancelled).input(steer(two));
    let play = play.says(TurnEvent::Steered { message: one, taken: true }).ends(TurnEnd::Stopped);
    assert_eq!(play.steered(), [(two, false), (one, false)]);
    assert!(!play.kinds().contains(&EventType::Status), "a turn that is stopped takes nothing");
}

#[test]
fn a_tool_works_from_its_call_to_its_result() {
    let call = |id: &str| TurnEvent::ToolUse { id: id.into(), name: "x".into(), input: json!({}) };
    let done = |id: &str| TurnEvent::ToolResult { id: id.into(), content: json!(1), is_error: false };
    let play = Play::new();
    assert!(!play.machine.has_open_call());
    let play = play.says(call("a")).says(call("b")).says(done("a"));
    assert!(play.machine.has_open_call());
    assert!(!play.says(done("b")).machine.has_open_call());
}

#[test]
fn an_approval_nobody_answered_expires_with_the_run() {
    let id = ApprovalId::generate();
    let asks = TurnEvent::Approval { id, tool_use_id: None, name: "x".into(), input: json!({}), is_question: false };
    let play = Play::new().says(asks).stop(Why::Cancelled).ends(TurnEnd::Stopped);
    let resolved = play.bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalResolved(resolved) => Some(resolved),
        _ => None,
    });
    assert_eq!(resolved.unwrap().decision, Decision::Expired);
}

#[test]
fn usage_is_priced_by_the_table_unless_the_vendor_said_it_and_unknown_stays_unknown() {
    let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
    let cost_of = |model: &str| {
        let report = TurnEvent::Usage { usage, model: Some(model.into()), cost: None };
        Play::new().says(report).ends(TurnEnd::Completed).machine.answer().cost
    };
    assert_eq!(cost_of("no-such-model"), None);
    assert_eq!(cost_of("scripted").unwrap().as_nanos(), 0);
    assert!(cost_of("claude-sonnet-4-5").unwrap().as_nanos() > 0);
}

#[test]
fn a_resumed_machine_closes_what_a_dead_one_left_open() {
    let id = MessageId::generate();
    let events: Vec<EventBody> = vec![
        domain::event::StreamStart { stream_id: id }.into(),
        domain::event::ContentDelta { stream_id: id, delta: "so far".into(), item: None }.into(),
        domain::event::ToolUse { stream_id: id, tool_use_id: "t".into(), name: "x".into(), input: json!(1) }.into(),
    ];
    let machine = Machine::resumed(setting(Limits::default()), &events);
    let play = Play { machine, effects: Vec::new() }.stop(Why::Interrupted(Interruption::Crash)).ends(TurnEnd::Stopped);
    use EventType as T;
    assert_eq!(play.kinds(), [T::ToolResult, T::StreamEnd, T::RunInterrupted]);
    assert_eq!(play.response(), "so far");
}

#[test]
fn neighbours_coalesce_and_the_text_stays_the_same() {
    let id = MessageId::generate();
    let text = |delta: &str| Entry {
        body: domain::event::ContentDelta { stream_id: id, delta: delta.into(), item: None }.into(),
        raws: vec![format!("\"{delta}\"")],
    };
    let thought = Entry::new(domain::event::ThinkingDelta { stream_id: id, delta: "t".into(), item: None });
    let out = coalesce(vec![text("a"), text("b"), thought.clone(), text("c")]);
    assert_eq!(out.len(), 3);
    let (body, raw) = out[0].clone().raw();
    assert!(matches!(body, EventBody::ContentDelta(delta) if delta.delta == "ab"));
    assert_eq!(raw.unwrap(), r#"["a","b"]"#);
    let large = "x".repeat(40_000);
    assert_eq!(coalesce(vec![text(&large), text(&large)]).len(), 2, "an event stays bounded");
}
