//! A planned cell of several agents: they answer at the same time in one room.

use crate::harness::{EngineHarness, TestTurn, me, transcript_lines};
use domain::{
    agent::Agent,
    event::{EventType, NewEvent, RunQueued},
    ids::{AgentId, RoomId, RunId},
    message::Message,
    position::Position,
    run::RunStatus,
};
use providers::{SavedInSession, TurnCommand, TurnEnd};
use serde_json::json;
use store::journal::{Commit, Guard, RowChange, SeqRef, TapeHold};
use testkit::database::TestDatabase;

contract! {
    two_agents_of_a_cell_answer_at_the_same_time,
    a_session_receives_the_answer_of_an_agent_that_answered_at_the_same_time,
    the_end_of_a_run_queues_the_next_cell_of_the_plan,
    a_cancelled_run_ends_the_plan,
}

/// Queues a run of each agent for a message, all in one cell.
async fn queue_cell(harness: &EngineHarness, room: RoomId, message: &Message, agents: &[&Agent]) -> Vec<RunId> {
    let message_id = message.id;
    let (mut events, mut changes, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (index, agent) in agents.iter().enumerate() {
        let (run_id, agent_id) = (RunId::generate(), agent.id);
        events.push(NewEvent::new(RunQueued { message_id }).of_run(run_id, agent_id));
        let (seq, cell) = (SeqRef::Event(index), SeqRef::Event(0));
        changes.push(RowChange::QueueRun {
            owner: me().workspace,
            run_id,
            agent_id,
            message_id,
            place: None,
            seq,
            cell,
            claim: None,
        });
        runs.push(run_id);
    }
    harness.store.commit(Commit { room_id: room, guard: Guard::None, events, changes }).await.unwrap();
    runs
}

/// Both turns of a cell, in the order of the agents.
async fn both_turns(harness: &mut EngineHarness, first: &Agent) -> [TestTurn; 2] {
    let (one, two) = (harness.turn().await, harness.turn().await);
    if one.agent() == first.id { [one, two] } else { [two, one] }
}

async fn two_agents_of_a_cell_answer_at_the_same_time(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    // A message of its own, so that the room is busy with a later cell too.
    let asked = harness.post_when(room, "asked", domain::room::WhenBusy::Enqueue, &[ann.id]).await;
    harness.turn().await.answer("a", "ready").await;
    harness.ended(asked.runs[0].id).await;
    let runs = queue_cell(&harness, room, &asked.message, &[&ann, &bob]).await;
    let [one, two] = both_turns(&mut harness, &ann).await;
    let later = harness.post_when(room, "later", domain::room::WhenBusy::Enqueue, &[ann.id]).await.runs[0].id;
    for n in 0..20 {
        one.text(&format!("a{n} ")).await;
        two.text(&format!("b{n} ")).await;
    }
    assert_eq!(
        harness.store.run(&me().workspace, later).await.unwrap().status,
        RunStatus::Queued,
        "the next cell waits"
    );
    one.complete();
    harness.ended(runs[0]).await;
    assert_eq!(harness.store.run(&me().workspace, later).await.unwrap().status, RunStatus::Queued, "for the last run");
    two.complete();
    harness.ended(runs[1]).await;
    harness.turn().await.answer("a", "done").await;
    harness.ended(later).await;
    let page = harness.store.page(&me().workspace, room, &Position::START, 1000, false).await.unwrap();
    assert!(page.events.iter().map(|event| event.seq).eq(1..=page.head), "the journal has no gap");
    for run in &runs {
        let mut of_run = page.events.iter().filter(|event| event.run_id == Some(*run));
        let ends = of_run.clone().filter(|event| event.kind.ends_a_run()).count();
        assert_eq!((ends, of_run.next_back().unwrap().kind), (1, EventType::RunCompleted), "one end, and it is last");
    }
    let history = harness.store.history(&me().workspace, room, 0, None, 100).await.unwrap();
    for (run, name) in runs.iter().zip(["a", "b"]) {
        let whole: String = (0..20).map(|n| format!("{name}{n} ")).collect();
        let answers: Vec<_> = history.messages.iter().filter(|message| message.run_id == Some(*run)).collect();
        assert_eq!(answers.iter().map(|answer| answer.text.as_str()).collect::<Vec<_>>(), [whole]);
    }
    harness.stop().await;
}

async fn a_session_receives_the_answer_of_an_agent_that_answered_at_the_same_time(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    let asked = harness.post_when(room, "asked", domain::room::WhenBusy::Enqueue, &[ann.id]).await;
    harness.turn().await.answer("a", "ready").await;
    harness.ended(asked.runs[0].id).await;
    let runs = queue_cell(&harness, room, &asked.message, &[&ann, &bob]).await;
    let [one, two] = both_turns(&mut harness, &ann).await;
    one.session("a").await;
    two.session("b").await;
    one.text("from Ann").await;
    two.text("from Bob").await;
    two.end(TurnEnd::Completed, SavedInSession::PromptAndAnswer);
    harness.ended(runs[1]).await;
    one.end(TurnEnd::Completed, SavedInSession::PromptAndAnswer);
    harness.ended(runs[0]).await;
    let next = harness.post(room, "next").await;
    for (agent, missed) in [(&ann, vec!["Bob: from Bob"]), (&bob, vec!["Ann: from Ann", "Ann: yes"])] {
        let turn = harness.turn().await;
        assert_eq!(turn.agent(), agent.id);
        let mut heard = transcript_lines(&turn.session_to_resume().missed);
        heard.extend(turn.later());
        assert_eq!(heard, missed);
        turn.answer(&agent.spec.name.as_str()[..1].to_lowercase(), "yes").await;
    }
    for run in next.runs {
        harness.ended(run.id).await;
    }
    harness.stop().await;
}

/// Plans cells behind these runs, as a post with a richer policy will.
async fn plan(harness: &EngineHarness, room: RoomId, running: &[RunId], message: &Message, cells: &[&[AgentId]]) {
    let planned: Vec<_> = cells.iter().map(|agents| json!({"message_id": message.id, "agents": agents})).collect();
    let state = json!({"running": running, "planned": planned}).to_string();
    let changes = vec![RowChange::PutTape { based_on: 0, state: Some(state), hold: TapeHold::Nothing }];
    harness.store.commit(Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }).await.unwrap();
}

async fn the_end_of_a_run_queues_the_next_cell_of_the_plan(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    let asked = harness.post_when(room, "asked", domain::room::WhenBusy::Enqueue, &[ann.id]).await;
    let turn = harness.turn().await;
    plan(&harness, room, &[asked.runs[0].id], &asked.message, &[&[ann.id, bob.id], &[bob.id]]).await;
    turn.answer("a", "one").await;
    harness.ended(asked.runs[0].id).await;
    let planned = harness.store.unfinished_runs(&me().workspace, room).await.unwrap();
    assert_eq!(planned.len(), 2, "queued in the commit of the end");
    let [one, two] = both_turns(&mut harness, &ann).await;
    // Ann has answered the message before, Bob has not.
    assert!(one.request.prompt.starts_with("It is your turn again."), "{}", one.request.prompt);
    assert_eq!(two.request.prompt, "asked");
    // Both end at the same time: one of them queues the last cell, exactly once.
    one.answer("a", "two").await;
    two.answer("b", "three").await;
    let last = harness.turn().await;
    assert_eq!(last.agent(), bob.id);
    assert_eq!(harness.store.tape(room).await.unwrap(), None, "nothing is planned any more");
    let id = last.request.run_id;
    last.answer("b", "four").await;
    harness.ended(id).await;
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty());
    let history = harness.store.history(&me().workspace, room, 0, None, 100).await.unwrap();
    let mut texts: Vec<_> = history.messages.iter().map(|message| message.text.as_str()).collect();
    texts[2..4].sort_unstable();
    assert_eq!(texts, ["asked", "one", "three", "two", "four"]);
    harness.stop().await;
}

async fn a_cancelled_run_ends_the_plan(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let asked = harness.post(room, "asked").await;
    let mut turn = harness.turn().await;
    plan(&harness, room, &[asked.runs[0].id], &asked.message, &[&[ann.id]]).await;
    let actor = me();
    let cancelling = harness.engine.cancel_room(&actor, room);
    let provider = async {
        assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
        turn.end(TurnEnd::Stopped, SavedInSession::Nothing);
    };
    let (cancelled, ()) = tokio::join!(cancelling, provider);
    cancelled.unwrap();
    assert_eq!(harness.store.tape(room).await.unwrap(), None);
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty(), "a stop means stop");
    harness.stop().await;
}
