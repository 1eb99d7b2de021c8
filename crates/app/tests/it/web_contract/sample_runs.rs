//! The content of the sample journal: every event type, and everything that the fold distinguishes.

use super::sample_journal::{SampleJournal, SampleRun, name};
use domain::{
    approval::{DecisionAuthor, RememberScope, RememberedRule},
    event::{
        ApprovalRequested, ApprovalResolved, ContentDelta, Decision, ErrorReported, EventType, FileChanged,
        Interruption, MessageCopied, ParticipantJoined, ParticipantLeft, Retract, RunDelegated, Status, TapePlanned,
        ThinkingDelta, ToolOutputDelta, ToolResult, ToolUse, UsageReported,
    },
    ids::{AgentId, ApprovalId, MessageId},
    limits::Limit,
    message::{Attachment, Author, MessageStatus, Part, ToolCall, ToolOutcome},
    room::WhenBusy,
    run::RunError,
    run_tree::ChildRun,
    tape::{CellKind, CellReason, TapeCell, TapeChange},
    usage::{Cost, Usage},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

/// Builds the journal of one room.
pub fn sample() -> SampleJournal {
    let mut journal = SampleJournal::new();
    let (first, second): (AgentId, AgentId) = (journal.id(), journal.id());
    journal.append(ParticipantJoined { agent_id: first, name: name("first") });
    journal.append(ParticipantJoined { agent_id: second, name: name("second") });
    copied_messages(&mut journal, first);
    two_agents_one_after_another(&mut journal, first, second);
    tools_and_attachments(&mut journal, first);
    items_and_retractions(&mut journal, first);
    approvals(&mut journal, second);
    stops_and_failures(&mut journal, first, second);
    steered_and_skipped(&mut journal, first);
    two_agents_at_the_same_time(&mut journal, first, second);
    a_task_for_another_agent(&mut journal, first, second);
    a_long_answer(&mut journal, first);
    journal.append(ParticipantLeft { agent_id: second });
    journal
}

#[test]
fn every_event_type_is_in_the_sample() {
    let kinds: BTreeSet<&str> = sample().events.iter().map(|event| event.kind.as_str()).collect();
    let all: BTreeSet<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, all, "add an event of the missing type to the sample");
}

/// The room was branched off another one.
fn copied_messages(journal: &mut SampleJournal, agent: AgentId) {
    let text = |text: &str| Part::Text { text: text.to_owned(), item: None };
    let call = Part::Tool(ToolCall {
        tool_use_id: "copied".into(),
        name: "Read".into(),
        input: json!({"path": "a.txt"}),
        output: String::new(),
        result: Some(ToolOutcome { content: json!("one"), is_error: false }),
        child: None,
    });
    let (person, own) =
        (Author::Person { name: name("local"), user_id: None }, Author::Agent { id: agent, name: name("first") });
    let notes = Attachment { name: name("a.txt"), media_type: "text/plain".into(), url: "/api/uploads/1".into() };
    for (author, status, parts) in [
        (person, MessageStatus::Complete, vec![text("What is in a.txt?")]),
        (own, MessageStatus::Partial, vec![text("I read it."), call, text("It says")]),
    ] {
        let (message_id, copy_of): (MessageId, MessageId) = (journal.id(), journal.id());
        let written_at = domain::time::Timestamp::from_millis(1_700_000_000_000);
        journal.append(MessageCopied {
            message_id,
            author,
            status,
            parts,
            attachments: if status == MessageStatus::Complete { vec![notes.clone()] } else { Vec::new() },
            written_at,
            copy_of,
        });
    }
}

fn plan_of(agents: [AgentId; 2]) -> Vec<TapeCell> {
    let cell = |(number, agent): (u32, AgentId)| TapeCell {
        id: format!("p{number}"),
        kind: CellKind::Sequential,
        agents: vec![agent],
        reason: CellReason::Priority,
        round: 0,
    };
    (1..).zip(agents).map(cell).collect()
}

fn two_agents_one_after_another(journal: &mut SampleJournal, first: AgentId, second: AgentId) {
    let message = journal.post("Hello both", WhenBusy::Enqueue);
    journal.append(TapePlanned::new(message, 0, 1, plan_of([first, second])));
    journal.append(TapePlanned::changed(TapeChange::Paused, plan_of([first, second])));
    let reordered = TapePlanned::changed(TapeChange::Reordered, plan_of([first, second]));
    journal.append(TapePlanned { messages: vec![message], ..reordered });
    let (mut one, mut two) = (journal.queue(first, message), journal.queue(second, message));
    journal.start(&mut one, Some("scripted-1"));
    think(journal, &mut one, "A greeting. ", None);
    think(journal, &mut one, "Greet back.", None);
    for delta in ["Hello", " from", " the", " first."] {
        say(journal, &mut one, delta, None);
    }
    // 0.1 + 0.2 dollars: the sum is exact only in whole nano-dollars.
    report_usage(journal, &mut one, Some(100_000_000), Some("scripted-1-mini"));
    report_usage(journal, &mut one, Some(200_000_000), None);
    journal.complete(one);
    journal.start(&mut two, None);
    say(journal, &mut two, "And from the second: ünïcödé \u{1F3AD} <b>&\"\\", None);
    report_usage(journal, &mut two, Some(1), None);
    report_usage(journal, &mut two, None, None);
    report_usage(journal, &mut two, Some(1), None);
    journal.complete(two);
    journal.append(TapePlanned::new(message, 1, 1, plan_of([first, second])));
}

fn tools_and_attachments(journal: &mut SampleJournal, agent: AgentId) {
    let attachment = |file: &str, media_type: &str, number: u8| Attachment {
        name: name(file),
        media_type: media_type.into(),
        url: format!("/api/uploads/019a0000-0000-7000-8000-0000000000f{number}"),
    };
    let files = vec![attachment("plan.pdf", "application/pdf", 1), attachment("sketch.png", "image/png", 2)];
    let message = journal.post_with("@first look at these", WhenBusy::Enqueue, vec![agent], files);
    let mut run = journal.queue(agent, message);
    journal.start(&mut run, Some("scripted-1"));
    status(journal, &mut run, "thinking", "Reading the attachments", None);
    say(journal, &mut run, "I look.", None);
    call(journal, &mut run, "t1", "Read", json!({"path": "attachments/plan.pdf"}));
    for delta in ["page 1\n", "page 2\n"] {
        let body = ToolOutputDelta { stream_id: run.stream_id, tool_use_id: "t1".into(), delta: delta.into() };
        journal.append_to(&mut run, body);
    }
    give_result(journal, &mut run, "t1", json!([{"type": "text", "text": "two pages"}]), false);
    // A provider may use an id again: output and result belong to the newest call with it.
    call(journal, &mut run, "t1", "Write", json!({"path": "notes.md", "text": "…"}));
    let body = ToolOutputDelta { stream_id: run.stream_id, tool_use_id: "t1".into(), delta: "writing".into() };
    journal.append_to(&mut run, body);
    give_result(journal, &mut run, "t1", json!("no space left on device"), true);
    journal.append_to(&mut run, FileChanged { path: "notes.md".into(), change: "modified".into() });
    // Output and results of a call that does not exist change nothing.
    let body = ToolOutputDelta { stream_id: run.stream_id, tool_use_id: "none".into(), delta: "lost".into() };
    journal.append_to(&mut run, body);
    give_result(journal, &mut run, "none", json!(null), false);
    say(journal, &mut run, "Done.", None);
    journal.complete(run);
}

fn items_and_retractions(journal: &mut SampleJournal, agent: AgentId) {
    let mut run = journal.ask(agent, "Try twice");
    say(journal, &mut run, "Keep this. ", Some("1"));
    think(journal, &mut run, "Not good", Some("2"));
    say(journal, &mut run, "Lose", Some("2"));
    say(journal, &mut run, " this.", Some("2"));
    call(journal, &mut run, "t2", "Search", json!({"query": "better words"}));
    let body = Retract { stream_id: run.stream_id, item: "2".into() };
    journal.append_to(&mut run, body);
    status(journal, &mut run, "retrying", "The model is asked again", None);
    give_result(journal, &mut run, "t2", json!({"hits": 0}), false);
    say(journal, &mut run, "And this.", Some("3"));
    // The same text without an item is another part.
    say(journal, &mut run, " Without an item.", None);
    say(journal, &mut run, " Joined.", None);
    let body = Retract { stream_id: run.stream_id, item: "unknown".into() };
    journal.append_to(&mut run, body);
    journal.complete(run);
}

fn approvals(journal: &mut SampleJournal, agent: AgentId) {
    let mut run = journal.ask(agent, "Clean up");
    say(journal, &mut run, "May I?", None);
    call(journal, &mut run, "a1", "Bash", json!({"command": "rm -r build"}));
    let edited = request_approval(journal, &mut run, Some("a1"), "Bash", json!({"command": "rm -r build"}), false);
    resolve(journal, &mut run, edited, Decision::Allow, Some(json!({"command": "rm -r build/cache"})), false);
    give_result(journal, &mut run, "a1", json!("removed"), false);
    call(journal, &mut run, "a2", "Bash", json!({"command": "rm -r /"}));
    let denied = request_approval(journal, &mut run, Some("a2"), "Bash", json!({"command": "rm -r /"}), false);
    resolve(journal, &mut run, denied, Decision::Deny, None, false);
    give_result(journal, &mut run, "a2", json!("denied by the user"), true);
    let remembered = request_approval(journal, &mut run, None, "Write", json!({"path": "a"}), false);
    resolve(journal, &mut run, remembered, Decision::Allow, None, true);
    let questions = json!({"questions": [{"question": "Which color?", "options": ["red", "blue"]}]});
    let question = request_approval(journal, &mut run, None, "ask_user", questions, true);
    resolve(journal, &mut run, question, Decision::Allow, Some(json!({"answers": ["blue"]})), false);
    // Two at once: the run waits until both are decided. Nobody answers the first in time.
    let expired = request_approval(journal, &mut run, None, "Bash", json!({"command": "make"}), false);
    let allowed = request_approval(journal, &mut run, None, "Bash", json!({"command": "ls"}), false);
    resolve(journal, &mut run, allowed, Decision::Allow, None, false);
    resolve(journal, &mut run, expired, Decision::Expired, None, false);
    say(journal, &mut run, "Now the last one.", None);
    call(journal, &mut run, "a3", "Bash", json!({"command": "make install"}));
    let withdrawn = request_approval(journal, &mut run, Some("a3"), "Bash", json!({"command": "make install"}), false);
    // The run is cancelled: its open approval is withdrawn, and the outcome of its open call is unknown.
    resolve(journal, &mut run, withdrawn, Decision::Expired, None, false);
    give_result(journal, &mut run, "a3", json!("outcome unknown: the run ended before the tool did"), true);
    report_usage(journal, &mut run, Some(6_000), None);
    journal.cancel(run);
}

fn stops_and_failures(journal: &mut SampleJournal, first: AgentId, second: AgentId) {
    let mut interrupted = journal.ask(first, "Count to a million");
    for delta in ["1", " 2", " 3"] {
        say(journal, &mut interrupted, delta, None);
    }
    let message = journal.post("Stop, something else", WhenBusy::Interrupt);
    let mut next = journal.queue(first, message);
    journal.interrupt(interrupted, Interruption::NewMessage);
    journal.start(&mut next, None);
    report_usage(journal, &mut next, Some(12_345), None);
    journal.interrupt(next, Interruption::Crash);
    let mut stopped = journal.ask(second, "Go on");
    think(journal, &mut stopped, "Where was I?", None);
    journal.interrupt(stopped, Interruption::Shutdown);

    let mut failed = journal.ask(first, "Write a book");
    say(journal, &mut failed, "Chapter 1", None);
    report_usage(journal, &mut failed, Some(7_000), None);
    let error = RunError::new("limit_output_bytes", "The answer has reached its limit of 10 bytes.");
    let report = ErrorReported { code: error.code.clone(), message: error.message.clone() };
    journal.append_to(&mut failed, report);
    journal.fail(failed, error, Some(Limit::OutputBytes));

    let message = journal.post("Are you there?", WhenBusy::Reject);
    let (missing, queued) = (journal.queue(first, message), journal.queue(second, message));
    journal.fail_before_start(missing, RunError::new("provider_missing", "The program is not installed."));
    journal.cancel_before_start(queued);
}

fn steered_and_skipped(journal: &mut SampleJournal, agent: AgentId) {
    let mut run = journal.ask(agent, "Describe the sea");
    say(journal, &mut run, "The sea is", None);
    let message = journal.post("in two words", WhenBusy::Steer);
    status(journal, &mut run, "steered", "The message was added to the running answer", Some(message));
    say(journal, &mut run, " large, blue.", None);
    journal.complete(run);
    let run = journal.ask(agent, "Nothing to add?");
    journal.skip(run);
}

fn two_agents_at_the_same_time(journal: &mut SampleJournal, first: AgentId, second: AgentId) {
    let message = journal.post("Both at once", WhenBusy::Enqueue);
    let (mut one, mut two) = (journal.queue(first, message), journal.queue(second, message));
    journal.start(&mut one, Some("scripted-1"));
    journal.start(&mut two, Some("scripted-1"));
    for (left, right) in [("a", "x"), ("b", "y"), ("c", "z")] {
        say(journal, &mut one, left, None);
        think(journal, &mut two, "…", None);
        say(journal, &mut two, right, None);
    }
    // The same id in two runs is two calls.
    call(journal, &mut one, "t", "Left", json!({}));
    call(journal, &mut two, "t", "Right", json!({}));
    give_result(journal, &mut two, "t", json!("right"), false);
    give_result(journal, &mut one, "t", json!("left"), false);
    journal.complete(two);
    journal.complete(one);
}

fn a_task_for_another_agent(journal: &mut SampleJournal, first: AgentId, second: AgentId) {
    let mut run = journal.ask(first, "Let the other one count");
    call(journal, &mut run, "d1", "delegate", json!({"agent": "second", "task": "count"}));
    let child = ChildRun { run_id: journal.id(), room_id: journal.id(), agent_id: second, agent_name: name("second") };
    for tool_use_id in [Some("d1".to_owned()), None] {
        let body = RunDelegated { stream_id: run.stream_id, tool_use_id, child: child.clone() };
        journal.append_to(&mut run, body);
    }
    let body = ToolOutputDelta { stream_id: run.stream_id, tool_use_id: "d1".into(), delta: "1 2".into() };
    journal.append_to(&mut run, body);
    give_result(journal, &mut run, "d1", json!("1 2 3"), false);
    journal.complete(run);
}

fn a_long_answer(journal: &mut SampleJournal, agent: AgentId) {
    let mut run = journal.ask(agent, "Count");
    for number in 1..=50 {
        say(journal, &mut run, &format!("{number} "), None);
    }
    report_usage(journal, &mut run, Some(5_000_000), None);
    journal.complete(run);
    for text in ["Thanks", "Bye"] {
        let mut run = journal.ask(agent, text);
        say(journal, &mut run, "You are welcome.", None);
        journal.complete(run);
    }
}

fn say(journal: &mut SampleJournal, run: &mut SampleRun, delta: &str, item: Option<&str>) {
    let body = ContentDelta { stream_id: run.stream_id, delta: delta.into(), item: item.map(Into::into) };
    journal.append_to(run, body);
}

fn think(journal: &mut SampleJournal, run: &mut SampleRun, delta: &str, item: Option<&str>) {
    let body = ThinkingDelta { stream_id: run.stream_id, delta: delta.into(), item: item.map(Into::into) };
    journal.append_to(run, body);
}

fn status(journal: &mut SampleJournal, run: &mut SampleRun, code: &str, text: &str, message_id: Option<MessageId>) {
    journal.append_to(run, Status { status: code.into(), message: text.into(), message_id });
}

fn call(journal: &mut SampleJournal, run: &mut SampleRun, id: &str, tool: &str, input: Value) {
    let body = ToolUse { stream_id: run.stream_id, tool_use_id: id.into(), name: tool.into(), input };
    journal.append_to(run, body);
}

fn give_result(journal: &mut SampleJournal, run: &mut SampleRun, id: &str, content: Value, is_error: bool) {
    let body = ToolResult { stream_id: run.stream_id, tool_use_id: id.into(), content, is_error };
    journal.append_to(run, body);
}

fn request_approval(
    journal: &mut SampleJournal,
    run: &mut SampleRun,
    call: Option<&str>,
    tool: &str,
    input: Value,
    is_question: bool,
) -> ApprovalId {
    let (approval_id, expires_at) = (journal.id(), journal.now() + Duration::from_secs(600));
    let (tool_use_id, name) = (call.map(Into::into), tool.into());
    let pattern = RememberedRule::new(tool, &input, RememberScope::Pattern).map(|rule| rule.label());
    journal
        .append_to(run, ApprovalRequested { approval_id, tool_use_id, name, input, expires_at, is_question, pattern });
    approval_id
}

fn resolve(
    journal: &mut SampleJournal,
    run: &mut SampleRun,
    approval_id: ApprovalId,
    decision: Decision,
    input: Option<Value>,
    remember: bool,
) {
    let user_id = (decision != Decision::Expired).then_some(journal.user_id);
    let scope = remember.then_some(RememberScope::Tool);
    let author = user_id.map(|user_id| DecisionAuthor {
        user_id: Some(user_id),
        name: name("local"),
        credential: "browser_session".into(),
        address: Some(Ipv4Addr::LOCALHOST.into()),
    });
    journal.append_to(run, ApprovalResolved { approval_id, decision, input, remember, scope, user_id, author });
}

fn report_usage(journal: &mut SampleJournal, run: &mut SampleRun, nanos: Option<i64>, model: Option<&str>) {
    let usage = Usage { input_tokens: 120, output_tokens: 30, cache_read_tokens: 1000, cache_write_tokens: 7 };
    let (cost, model) = (nanos.map(Cost::from_nanos), model.map(Into::into));
    // What the API did not report of a stopped answer is estimated; here, where there is no price.
    let is_estimated = nanos.is_none();
    journal.append_to(run, UsageReported { is_estimated, ..UsageReported::new(usage, cost, model) });
}
