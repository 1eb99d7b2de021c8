//! Tests of the turn machine: inputs in, effects out.

mod metered;

use super::{PendingEvent, RunFinish, TurnEffect, TurnInput, TurnMachine, TurnSettings, TurnStopReason, coalesce};
use domain::{
    agent::ToolPolicy,
    approval::{RememberScope, RememberedRule},
    event::{Decision, EventBody, EventType, Interruption, Status},
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::MessageStatus,
    run::{RunError, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{ProviderEvent, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use serde_json::json;
use std::time::Duration;

fn settings(limits: Limits) -> TurnSettings {
    TurnSettings {
        stream_id: MessageId::generate(),
        limits,
        tools: ToolPolicy { allow: vec!["read*".into()], ask: Vec::new(), deny: vec!["drop*".into()] },
        remembered: Vec::new(),
        model: None,
        prices: domain::prices::PriceSource::Table,
        started_at: Timestamp::from_millis(1_000),
    }
}

struct TurnTest {
    machine: TurnMachine,
    effects: Vec<TurnEffect>,
}

impl TurnTest {
    fn new() -> Self {
        Self::within(Limits::default())
    }

    fn within(limits: Limits) -> Self {
        Self { machine: TurnMachine::new(settings(limits)), effects: Vec::new() }
    }

    fn input(mut self, input: TurnInput) -> Self {
        self.machine.handle(input, Timestamp::from_millis(3_500), &mut self.effects);
        self
    }

    fn report(self, event: TurnEvent) -> Self {
        self.input(TurnInput::ProviderReport(event.into()))
    }

    fn text(self, delta: &str) -> Self {
        self.report(TurnEvent::Text { delta: delta.into(), item: None })
    }

    fn stop(self, why: TurnStopReason) -> Self {
        self.input(TurnInput::Stop(why))
    }

    fn end(self, end: TurnEnd) -> Self {
        self.input(TurnInput::Ended(TurnOutcome::from_end(end)))
    }

    fn event_types(&self) -> Vec<EventType> {
        self.event_bodies().iter().map(EventBody::kind).collect()
    }

    fn event_bodies(&self) -> Vec<EventBody> {
        let appended = self.effects.iter().filter_map(|effect| match effect {
            TurnEffect::Append(entry) => Some(entry.body.clone()),
            TurnEffect::Finish(finish) => Some(finish.terminal.clone()),
            _ => None,
        });
        appended.collect()
    }

    fn finish(&self) -> &RunFinish {
        let ends: Vec<&RunFinish> = self
            .effects
            .iter()
            .filter_map(|effect| match effect {
                TurnEffect::Finish(finish) => Some(finish),
                _ => None,
            })
            .collect();
        assert_eq!(ends.len(), 1, "exactly one end");
        ends[0]
    }

    fn interrupt_count(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, TurnEffect::SendCommand(TurnCommand::Interrupt))).count()
    }

    fn response_text(&self) -> String {
        let end = self.event_bodies().into_iter().find_map(|body| match body {
            EventBody::StreamEnd(end) => Some(end.response_text),
            _ => None,
        });
        end.unwrap()
    }
}

#[test]
fn a_complete_answer_ends_the_run_as_completed() {
    let test = TurnTest::new().report(TurnEvent::ModelCall).text("a").text("b").end(TurnEnd::Completed);
    use EventType as T;
    assert_eq!(test.event_types(), [T::ContentDelta, T::ContentDelta, T::StreamEnd, T::RunCompleted]);
    assert_eq!(test.response_text(), "ab");
    assert_eq!((test.finish().status, test.finish().message), (RunStatus::Completed, MessageStatus::Complete));
    assert_eq!(test.finish().duration_ms, 2_500);
}

#[test]
fn invariant_03_one_end_input_after_it_is_ignored() {
    let test = TurnTest::new()
        .text("a")
        .end(TurnEnd::Completed)
        .text("late")
        .stop(TurnStopReason::Cancelled)
        .end(TurnEnd::Stopped);
    assert_eq!(test.finish().status, RunStatus::Completed);
    assert_eq!(test.event_types().last(), Some(&EventType::RunCompleted));
    assert_eq!(test.interrupt_count(), 0);
}

#[test]
fn invariant_06_partial_once_text_after_the_stop_is_dropped() {
    let test = TurnTest::new()
        .text("kept ")
        .stop(TurnStopReason::Interrupted(Interruption::NewMessage))
        .text("dropped")
        .stop(TurnStopReason::Cancelled)
        .end(TurnEnd::Completed);
    assert_eq!(test.response_text(), "kept ");
    assert_eq!(test.interrupt_count(), 1, "interrupted once; the first reason wins");
    assert_eq!((test.finish().status, test.finish().message), (RunStatus::Interrupted, MessageStatus::Partial));
    assert_eq!(test.event_types().iter().filter(|kind| **kind == EventType::StreamEnd).count(), 1);
}

#[test]
fn invariant_12_no_blind_repeat_an_open_call_is_recorded_as_unknown() {
    let tool = TurnEvent::ToolUse { id: "t1".into(), name: "deploy".into(), input: json!({}) };
    let test = TurnTest::new().report(tool).stop(TurnStopReason::Cancelled).end(TurnEnd::Stopped);
    let result = test.event_bodies().into_iter().find_map(|body| match body {
        EventBody::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert!(result.is_error && result.content.as_str().unwrap().starts_with("outcome unknown"));
    assert_eq!(test.finish().status, RunStatus::Cancelled);
}

#[test]
fn a_tool_result_during_a_stop_is_recorded() {
    let tool = TurnEvent::ToolUse { id: "t1".into(), name: "deploy".into(), input: json!({}) };
    let done = TurnEvent::ToolResult { id: "t1".into(), content: json!("ok"), is_error: false };
    let test = TurnTest::new().report(tool).stop(TurnStopReason::Cancelled).report(done).end(TurnEnd::Stopped);
    assert_eq!(test.event_types().iter().filter(|kind| **kind == EventType::ToolResult).count(), 1);
}

#[test]
fn invariant_14_limits_stop_a_turn() {
    let limits = Limits { turns: 2, output_bytes: 10, ..Limits::default() };
    let calls = |count: usize| {
        (0..count).fold(TurnTest::within(limits), |test, _| test.report(TurnEvent::ModelCall)).end(TurnEnd::Completed)
    };
    assert_eq!(calls(2).finish().status, RunStatus::Completed);
    let three = calls(3);
    assert_eq!(three.finish().error.as_ref().unwrap().code, "limit_turns");
    let long = TurnTest::within(limits).text("0123456789").text("x").text("never").end(TurnEnd::Stopped);
    assert_eq!(long.finish().error.as_ref().unwrap().code, "limit_output_bytes");
    assert_eq!(long.response_text(), "0123456789x", "the delta that crosses the limit is kept, later ones are not");
    let codes = [
        (Limit::Wall, "limit_wall"),
        (Limit::FirstByte, "limit_first_byte"),
        (Limit::Idle, "limit_idle"),
        (Limit::Tool, "limit_tool"),
    ];
    for (limit, code) in codes {
        let test = TurnTest::new().stop(TurnStopReason::Limit(limit)).end(TurnEnd::Stopped);
        assert_eq!(test.finish().error.as_ref().unwrap().code, code);
    }
}

#[test]
fn a_failure_is_reported_as_an_error_and_ends_the_run() {
    let test = TurnTest::new().text("so far").end(TurnEnd::Failed(RunError::new("overloaded", "try later")));
    use EventType as T;
    assert_eq!(test.event_types(), [T::ContentDelta, T::StreamEnd, T::ErrorReported, T::RunFailed]);
    assert_eq!(test.finish().message, MessageStatus::Partial);
}

fn approval_request(name: &str, is_question: bool) -> TurnEvent {
    let id = ApprovalId::generate();
    TurnEvent::Approval { id, tool_use_id: None, name: name.into(), input: json!({}), is_question }
}

/// The decisions sent to the provider.
fn sent_decisions(test: &TurnTest) -> Vec<Decision> {
    let decisions = test.effects.iter().filter_map(|effect| match effect {
        TurnEffect::SendCommand(TurnCommand::ResolveApproval { decision, .. }) => Some(*decision),
        _ => None,
    });
    decisions.collect()
}

/// The statuses of the run, in order.
fn statuses(test: &TurnTest) -> Vec<RunStatus> {
    let statuses = test.effects.iter().filter_map(|effect| match effect {
        TurnEffect::SetRunStatus(status) => Some(*status),
        _ => None,
    });
    statuses.collect()
}

impl TurnTest {
    /// Answers the approval that expires first.
    fn answer(self, decision: Decision, remember: bool) -> Self {
        let (approval, _) = self.machine.approval_deadline().unwrap();
        let remember = remember.then_some(RememberScope::Tool);
        self.input(TurnInput::ApprovalDecided { approval, decision, input: None, remember, author: None })
    }

    fn remembered_tools(&self) -> Vec<&str> {
        let tools = self.effects.iter().filter_map(|effect| match effect {
            TurnEffect::Remember(rule) => Some(rule.tool.as_str()),
            _ => None,
        });
        tools.collect()
    }

    fn settled_steering(&self) -> Vec<(MessageId, bool)> {
        let steered = self.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SteerSettled { message, taken } => Some((*message, *taken)),
            _ => None,
        });
        steered.collect()
    }
}

#[test]
fn approvals_follow_the_policy_or_wait_for_a_person() {
    assert_eq!(sent_decisions(&TurnTest::new().report(approval_request("read_file", false))), [Decision::Allow]);
    assert_eq!(sent_decisions(&TurnTest::new().report(approval_request("drop_table", false))), [Decision::Deny]);
    let asked = TurnTest::new().report(approval_request("write_file", false));
    assert!(sent_decisions(&asked).is_empty());
    let (id, deadline) = asked.machine.approval_deadline().unwrap();
    assert_eq!(deadline, Timestamp::from_millis(3_500) + Duration::from_secs(600));
    let answered = asked.input(TurnInput::ApprovalDecided {
        approval: id,
        decision: Decision::Allow,
        input: None,
        remember: None,
        author: None,
    });
    assert_eq!(sent_decisions(&answered), [Decision::Allow]);
    assert!(answered.machine.approval_deadline().is_none());
    assert_eq!(statuses(&answered), [RunStatus::WaitingForApproval, RunStatus::Running]);
}

#[test]
fn a_withdrawn_approval_is_no_longer_pending() {
    let test =
        TurnTest::new().report(approval_request("write_file", false)).report(approval_request("write_file", false));
    let (first, _) = test.machine.approval_deadline().unwrap();
    let test = test.report(TurnEvent::ApprovalWithdrawn { id: first });
    assert!(!test.machine.is_waiting_for(first));
    let (second, _) = test.machine.approval_deadline().unwrap();
    assert_eq!(statuses(&test).last(), Some(&RunStatus::WaitingForApproval), "the other approval is pending");
    let test = test.report(TurnEvent::ApprovalWithdrawn { id: second });
    assert_eq!(statuses(&test).last(), Some(&RunStatus::Running));
    assert!(test.machine.approval_deadline().is_none());
    // A second withdrawal, a late answer and the end add nothing.
    let test = test.report(TurnEvent::ApprovalWithdrawn { id: second });
    let late = TurnInput::ApprovalDecided {
        approval: second,
        decision: Decision::Allow,
        input: None,
        remember: Some(RememberScope::Tool),
        author: None,
    };
    let test = test.input(late).end(TurnEnd::Completed);
    let resolved = test.event_bodies().into_iter().filter_map(|body| match body {
        EventBody::ApprovalResolved(e) => Some((e.approval_id, e.decision, e.remember)),
        _ => None,
    });
    let expired = |id| (id, Decision::Expired, false);
    assert_eq!(resolved.collect::<Vec<_>>(), [expired(first), expired(second)]);
    assert!(sent_decisions(&test).is_empty() && test.remembered_tools().is_empty());
}

#[test]
fn an_approval_withdrawn_during_a_stop_expires_once() {
    let test = TurnTest::new().report(approval_request("write_file", false));
    let (id, _) = test.machine.approval_deadline().unwrap();
    let test = test.stop(TurnStopReason::Cancelled).report(TurnEvent::ApprovalWithdrawn { id }).end(TurnEnd::Stopped);
    assert_eq!(test.event_types().iter().filter(|kind| **kind == EventType::ApprovalResolved).count(), 1);
    assert_eq!(statuses(&test), [RunStatus::WaitingForApproval], "a stopping run does not become running");
}

#[test]
fn a_question_always_goes_to_a_person() {
    let asked = TurnTest::new().report(approval_request("read_mind", true));
    assert!(sent_decisions(&asked).is_empty(), "the policy allows read*");
    let requested = asked.event_bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalRequested(requested) => Some(requested),
        _ => None,
    });
    assert!(requested.unwrap().is_question);
    let answered = asked.answer(Decision::Allow, true);
    assert_eq!(
        (sent_decisions(&answered), answered.remembered_tools()),
        (vec![Decision::Allow], vec![]),
        "the answer is not remembered"
    );
    assert_eq!(
        sent_decisions(&answered.report(approval_request("read_mind", true))),
        [Decision::Allow],
        "the next question waits again"
    );
    assert_eq!(
        sent_decisions(&TurnTest::new().report(approval_request("drop_hint", true))),
        [Decision::Deny],
        "deny applies to questions too"
    );
}

#[test]
fn a_remembered_tool_needs_no_approval_until_it_is_forgotten() {
    let test = TurnTest::new().report(approval_request("write", false)).answer(Decision::Allow, true);
    assert_eq!(test.remembered_tools(), ["write"]);
    let resolved = test.event_bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalResolved(resolved) => Some(resolved),
        _ => None,
    });
    assert!(resolved.unwrap().remember);
    let test = test.report(approval_request("write", false));
    assert_eq!(sent_decisions(&test), [Decision::Allow, Decision::Allow]);
    let test = test.report(approval_request("write_more", false));
    assert!(test.machine.approval_deadline().is_some(), "remembered by exact name");
    let test = test.answer(Decision::Deny, true);
    assert_eq!(test.remembered_tools(), ["write"], "a denial is not remembered");
    let test = test.input(TurnInput::ForgetTool { tool: "write".into() }).report(approval_request("write", false));
    assert!(test.machine.approval_deadline().is_some());

    let mut settings = settings(Limits::default());
    settings.remembered =
        ["write", "drop_table"].map(|tool| RememberedRule::new(tool, &json!({}), RememberScope::Tool).unwrap()).into();
    let test = TurnTest { machine: TurnMachine::new(settings), effects: Vec::new() };
    let test = test.report(approval_request("write", false)).report(approval_request("drop_table", false));
    assert_eq!(sent_decisions(&test), [Decision::Allow, Decision::Deny], "deny overrides remembered tools");
}

#[test]
fn a_steered_message_is_sent_to_the_provider_and_settled_once() {
    let (one, two, other) = (MessageId::generate(), MessageId::generate(), MessageId::generate());
    let steer = |message| TurnInput::Steer { message, text: "left".into(), attachments: Vec::new() };
    let steered = |message, taken| TurnEvent::Steered { message, taken };
    let test = TurnTest::new().input(steer(one)).input(steer(two));
    let handed = test
        .effects
        .iter()
        .filter(|effect| matches!(effect, TurnEffect::SendCommand(TurnCommand::Steer { .. })))
        .count();
    assert_eq!((handed, test.settled_steering()), (2, vec![]));
    let test = test
        .report(steered(other, true))
        .report(steered(two, false))
        .report(steered(one, true))
        .report(steered(one, true));
    assert_eq!(test.settled_steering(), [(two, false), (one, true)]);
    let reported: Vec<_> = test
        .event_bodies()
        .into_iter()
        .filter_map(|body| match body {
            EventBody::Status(status) => Some((status.status, status.message_id)),
            _ => None,
        })
        .collect();
    assert_eq!(reported, [("steered".to_owned(), Some(one))]);
}

#[test]
fn a_steered_message_that_was_not_taken_is_returned() {
    let (one, two) = (MessageId::generate(), MessageId::generate());
    let steer = |message| TurnInput::Steer { message, text: "left".into(), attachments: Vec::new() };
    let test = TurnTest::new().input(steer(one)).end(TurnEnd::Completed);
    assert_eq!(test.settled_steering(), [(one, false)], "the turn ended without settling it");
    let test = TurnTest::new().input(steer(one)).stop(TurnStopReason::Cancelled).input(steer(two));
    let test = test.report(TurnEvent::Steered { message: one, taken: true }).end(TurnEnd::Stopped);
    assert_eq!(test.settled_steering(), [(two, false), (one, false)]);
    assert!(!test.event_types().contains(&EventType::Status), "a stopping turn takes no message");
}

#[test]
fn a_call_is_open_until_its_result() {
    let call = |id: &str| TurnEvent::ToolUse { id: id.into(), name: "x".into(), input: json!({}) };
    let done = |id: &str| TurnEvent::ToolResult { id: id.into(), content: json!(1), is_error: false };
    let test = TurnTest::new();
    assert!(!test.machine.has_open_call());
    let test = test.report(call("a")).report(call("b")).report(done("a"));
    assert!(test.machine.has_open_call());
    assert!(!test.report(done("b")).machine.has_open_call());
}

#[test]
fn an_unanswered_approval_expires_with_the_run() {
    let id = ApprovalId::generate();
    let asks = TurnEvent::Approval { id, tool_use_id: None, name: "x".into(), input: json!({}), is_question: false };
    let test = TurnTest::new().report(asks).stop(TurnStopReason::Cancelled).end(TurnEnd::Stopped);
    let resolved = test.event_bodies().into_iter().find_map(|body| match body {
        EventBody::ApprovalResolved(resolved) => Some(resolved),
        _ => None,
    });
    assert_eq!(resolved.unwrap().decision, Decision::Expired);
}

#[test]
fn usage_is_priced_by_the_table_and_unknown_models_have_no_cost() {
    let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
    let cost_of = |model: &str| {
        let report = TurnEvent::Usage { usage, model: Some(model.into()), cost: None };
        TurnTest::new().report(report).end(TurnEnd::Completed).machine.answer().cost
    };
    assert_eq!(cost_of("no-such-model"), None);
    assert_eq!(cost_of("scripted").unwrap().as_nanos(), 0);
    assert!(cost_of("claude-sonnet-4-5").unwrap().as_nanos() > 0);
}

#[test]
fn an_estimate_after_a_stop_is_priced_and_marked() {
    let usage = Usage { input_tokens: 1_000, output_tokens: 10, ..Usage::default() };
    let report = TurnEvent::EstimatedUsage { usage, model: Some("claude-sonnet-4-5".into()) };
    let test = TurnTest::new().stop(TurnStopReason::Cancelled).report(report).end(TurnEnd::Stopped);
    let reported = test.event_bodies().into_iter().find_map(|body| match body {
        EventBody::UsageReported(reported) => Some(reported),
        _ => None,
    });
    let reported = reported.unwrap();
    assert!(reported.is_estimated && reported.usage == usage);
    assert_eq!(test.machine.answer().cost.unwrap().as_nanos(), 1_000 * 3_000 + 10 * 15_000);
}

#[test]
fn a_restored_machine_closes_open_items() {
    let id = MessageId::generate();
    let events: Vec<EventBody> = vec![
        domain::event::StreamStart { stream_id: id }.into(),
        domain::event::ContentDelta { stream_id: id, delta: "so far".into(), item: None }.into(),
        domain::event::ToolUse { stream_id: id, tool_use_id: "t".into(), name: "x".into(), input: json!(1) }.into(),
    ];
    let machine = TurnMachine::from_events(settings(Limits::default()), &events);
    let test = TurnTest { machine, effects: Vec::new() }
        .stop(TurnStopReason::Interrupted(Interruption::Crash))
        .end(TurnEnd::Stopped);
    use EventType as T;
    assert_eq!(test.event_types(), [T::ToolResult, T::StreamEnd, T::RunInterrupted]);
    assert_eq!(test.response_text(), "so far");
}

#[test]
fn adjacent_deltas_merge_without_changing_the_text() {
    let id = MessageId::generate();
    let text = |delta: &str| PendingEvent {
        body: domain::event::ContentDelta { stream_id: id, delta: delta.into(), item: None }.into(),
        raw_items: vec![format!("\"{delta}\"")],
    };
    let thought = PendingEvent::new(domain::event::ThinkingDelta { stream_id: id, delta: "t".into(), item: None });
    let out = coalesce(vec![text("a"), text("b"), thought.clone(), text("c")]);
    assert_eq!(out.len(), 3);
    let (body, raw) = out[0].clone().into_parts();
    assert!(matches!(body, EventBody::ContentDelta(delta) if delta.delta == "ab"));
    assert_eq!(raw.unwrap(), r#"["a","b"]"#);
    let large = "x".repeat(40_000);
    assert_eq!(coalesce(vec![text(&large), text(&large)]).len(), 2, "the size of an event is bounded");
}

/// Each of these once passed a limit of 1,000 bytes.
#[test]
fn m5_every_body_counts_as_output() {
    let large = "x".repeat(2_000);
    let raw = |event: TurnEvent| ProviderEvent { event, raw: Some("x".repeat(20_000)) };
    let small = TurnEvent::Status { status: "s".into(), message: "small".into() };
    let reports: [(&str, ProviderEvent); 8] = [
        ("text", TurnEvent::Text { delta: large.clone(), item: None }.into()),
        ("thinking", TurnEvent::Thinking { delta: large.clone(), item: None }.into()),
        ("input", TurnEvent::ToolUse { id: "t".into(), name: "read".into(), input: json!({"a": large}) }.into()),
        ("output", TurnEvent::ToolOutput { id: "t".into(), delta: large.clone() }.into()),
        ("result", TurnEvent::ToolResult { id: "t".into(), content: json!([large]), is_error: false }.into()),
        ("status", TurnEvent::Status { status: "s".into(), message: large.clone() }.into()),
        (
            "approval",
            TurnEvent::Approval {
                id: ApprovalId::generate(),
                tool_use_id: None,
                name: "Bash".into(),
                input: json!({"a": large}),
                is_question: false,
            }
            .into(),
        ),
        ("raw", raw(small)),
    ];
    for (what, report) in reports {
        let limits = Limits { output_bytes: 1_000, ..Limits::default() };
        let test = TurnTest::within(limits).input(TurnInput::ProviderReport(report)).end(TurnEnd::Stopped);
        let code = test.finish().error.as_ref().map(|error| error.code.as_str());
        assert_eq!((code, test.interrupt_count()), (Some("limit_output_bytes"), 1), "{what}");
    }
}

#[test]
fn m5_results_after_the_limit_are_recorded_without_their_content() {
    let use_of = |id: &str| TurnEvent::ToolUse { id: id.into(), name: "read".into(), input: json!({}) };
    let result = |id: &str| TurnEvent::ToolResult { id: id.into(), content: json!("x".repeat(5_000)), is_error: false };
    let test = TurnTest::within(Limits { output_bytes: 1_000, ..Limits::default() })
        .report(use_of("a"))
        .report(use_of("b"))
        .report(result("a"))
        .report(result("b"))
        .report(result("unknown"))
        .end(TurnEnd::Stopped);
    let results: Vec<usize> = test
        .event_bodies()
        .iter()
        .filter_map(|body| match body {
            EventBody::ToolResult(result) => Some(result.content.as_str().unwrap().len()),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), 2);
    assert!(results[0] == 5_000 && results[1] < 100, "{results:?}");
}

#[test]
fn h4_a_status_is_cut() {
    let test = TurnTest::new()
        .report(TurnEvent::Status { status: "s".into(), message: "ä".repeat(100_000) })
        .end(TurnEnd::Completed);
    let Some(EventBody::Status(status)) = test.event_bodies().into_iter().next() else { panic!("no status") };
    assert_eq!(status.message.chars().count(), Status::MAX_CHARS + 1);
}

/// After one `ls`, "always" once allowed every command of the tool.
#[test]
fn m12_only_what_the_person_saw_is_remembered() {
    let ask = |command: &str| TurnEvent::Approval {
        id: ApprovalId::generate(),
        tool_use_id: None,
        name: "Bash".into(),
        input: json!({"command": command}),
        is_question: false,
    };
    for (scope, later, is_asked) in [
        (RememberScope::Exact, "git status", false),
        (RememberScope::Exact, "git status -s", true),
        (RememberScope::Pattern, "git status src", false),
        (RememberScope::Pattern, "git status -s", true),
        (RememberScope::Pattern, "git status; id", true),
        (RememberScope::Tool, "rm -rf /", false),
    ] {
        let asked = TurnTest::new().report(ask("git status"));
        let Some(EventBody::ApprovalRequested(shown)) = asked.event_bodies().pop() else { panic!("not asked") };
        assert_eq!(shown.pattern.as_deref(), Some("Bash(git status:*)"));
        let (approval, _) = asked.machine.approval_deadline().unwrap();
        assert!(asked.machine.can_remember(approval, scope));
        let answer = TurnInput::ApprovalDecided {
            approval,
            decision: Decision::Allow,
            input: None,
            remember: Some(scope),
            author: None,
        };
        let test = asked.input(answer).report(ask(later));
        assert_eq!(test.machine.approval_deadline().is_some(), is_asked, "{scope:?} {later}");
        let resolved = test.event_bodies().into_iter().find_map(|body| match body {
            EventBody::ApprovalResolved(resolved) => Some(resolved),
            _ => None,
        });
        assert_eq!(resolved.unwrap().scope, Some(scope));
    }
}

#[test]
fn a_turn_that_waits_for_a_slot_waits_for_quota_until_its_next_event() {
    let waiting = || TurnEvent::Waiting { status: "waiting_for_slot".into(), message: "In line".into() };
    let test = TurnTest::new().report(waiting()).report(waiting()).text("a").text("b");
    assert_eq!(statuses(&test), [RunStatus::WaitingForQuota, RunStatus::Running]);
}
