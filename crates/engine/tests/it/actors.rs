//! What a command checks and records about its actor.

use crate::harness::{EngineHarness, me, post, within};
use domain::{
    actor::{Actor, Credential},
    agent::AgentSpec,
    ids::TokenId,
    limits::LimitOverrides,
    name::Name,
    permission::Role,
    room::WhenBusy,
};
use engine::{
    EngineError,
    commands::{OnDisconnect, RoomPatch},
};
use std::time::Duration;
use store::IdempotentRequest;
use testkit::database::TestDatabase;

contract! {
    the_rules_for_agents_hold_for_every_caller,
    a_role_without_the_permission_is_refused_by_the_command_itself,
    a_room_and_its_participants_change_together_or_not_at_all,
    invariant_22_every_change_says_who_made_it_and_by_which_credential,
}

fn named(name: &str) -> AgentSpec {
    AgentSpec::new(Name::parse(name).unwrap(), "p")
}

async fn the_rules_for_agents_hold_for_every_caller(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let unknown = AgentSpec { provider: "nobody".into(), ..named("Ann") };
    match harness.engine.create_agent(&me(), unknown.clone(), None).await {
        Err(EngineError::Refused { pointer, detail }) if pointer == "/provider" => {
            assert!(detail.contains("nobody") && detail.contains("p, q"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
    let no_turns = LimitOverrides { turns: Some(0), ..LimitOverrides::default() };
    for wrong in [
        AgentSpec { limits: no_turns, ..named("Ann") },
        AgentSpec { model: Some("two\nlines".into()), ..named("Ann") },
        // L5: it would be an option of the agent's program.
        AgentSpec { model: Some("--yolo".into()), ..named("Ann") },
        AgentSpec { system_prompt: Some("x".repeat(10_000_000)), ..named("Ann") },
    ] {
        let refused = harness.engine.create_agent(&me(), wrong, None).await;
        assert!(matches!(refused, Err(EngineError::InvalidField { .. })), "{refused:?}");
    }
    let ann = harness.engine.create_agent(&me(), named("Ann"), None).await.unwrap();
    let change = |_: &AgentSpec| Ok::<_, EngineError>(unknown.clone());
    let refused = harness.engine.change_agent(&me(), ann.id, change, None).await;
    assert!(matches!(&refused, Err(EngineError::Refused { pointer, .. }) if pointer == "/provider"), "{refused:?}");
    harness.stop().await;
}

async fn a_role_without_the_permission_is_refused_by_the_command_itself(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let (viewer, member) = (Actor { role: Role::Viewer, ..me() }, Actor { role: Role::Member, ..me() });
    let posted = harness.engine.post_message(&viewer, room, post("hi", WhenBusy::Enqueue, &[]), None).await;
    assert!(matches!(posted, Err(EngineError::Forbidden(_))), "{posted:?}");
    let deleted = harness.engine.delete_agent(&member, ann.id, None).await;
    assert!(matches!(deleted, Err(EngineError::Forbidden(_))), "{deleted:?}");
    let renamed = RoomPatch { name: Some(Name::parse("Ours").unwrap()), ..RoomPatch::default() };
    harness.engine.update_room(&member, room, renamed, None).await.unwrap();
    assert_eq!(harness.store.room(&me().workspace, room).await.unwrap().name.as_str(), "Ours");
    harness.stop().await;
}

/// Two requests with one key and different bodies: the loser must change nothing, not even the participants.
async fn a_room_and_its_participants_change_together_or_not_at_all(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "q").await);
    for round in 0..10_u8 {
        let room = harness.room(&[]).await;
        let update = |name: &str, agent| RoomPatch {
            name: Some(Name::parse(name).unwrap()),
            agents: Some(vec![agent]),
            ..RoomPatch::default()
        };
        let attempt = |body| IdempotentRequest { key: format!("key {round}"), fingerprint: [body; 32] };
        let (first, second) = (attempt(1), attempt(2));
        let actor = me();
        let (one, other) = tokio::join!(
            harness.engine.update_room(&actor, room, update("Ann's", ann.id), Some(&first)),
            harness.engine.update_room(&actor, room, update("Bob's", bob.id), Some(&second)),
        );
        assert_eq!(one.is_ok(), other.is_err(), "{one:?} {other:?}");
        let changed = harness.store.room(&actor.workspace, room).await.unwrap();
        let expected = if one.is_ok() { ("Ann's", ann.id) } else { ("Bob's", bob.id) };
        assert_eq!((changed.name.as_str(), changed.agents), (expected.0, vec![expected.1]));
    }
    harness.stop().await;
}

async fn invariant_22_every_change_says_who_made_it_and_by_which_credential(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let token = TokenId::generate();
    let actor = Actor { credential: Credential::Token(token), role: Role::Admin, ..me() };
    let ann = harness.engine.create_agent(&actor, named("Ann"), None).await.unwrap();
    let room = harness.room(&[&ann]).await;
    let posted = harness.engine.post_message(&actor, room, post("hi", WhenBusy::Enqueue, &[]), None);
    let posted = posted.await.unwrap();
    let turn = harness.turn().await;
    let run = posted.runs[0].id;
    // The client that waits for the run disconnects: the server cancels the run itself.
    drop(harness.engine.cancel_on_disconnect(&actor, run, OnDisconnect::Cancel));
    within("the cancel", async {
        while !harness.store.audit_log(&actor.workspace, 1).await.unwrap().iter().any(|entry| entry.action == "cancel")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    turn.complete();
    harness.ended(run).await;
    harness.engine.delete_agent(&actor, ann.id, None).await.unwrap();

    let log = harness.store.audit_log(&actor.workspace, 100).await.unwrap();
    let line = |action: &str, object: &str, id: String| {
        let found = log.iter().find(|entry| entry.action == action && entry.object == object && entry.object_id == id);
        let entry = found.unwrap_or_else(|| panic!("no entry {action} {object} {id} in {log:?}"));
        (entry.user_id, entry.credential.clone(), entry.credential_id, entry.role.unwrap(), entry.room_id)
    };
    let by_token = |room| (actor.user_id(), "token".to_owned(), Some(token.0), Role::Admin, room);
    assert_eq!(line("create", "agent", ann.id.to_string()), by_token(None));
    assert_eq!(line("post", "message", posted.message.id.to_string()), by_token(Some(room)));
    assert_eq!(line("delete", "agent", ann.id.to_string()), by_token(None));
    let by_server = (None, "system".to_owned(), None, Role::Owner, Some(room));
    assert_eq!(line("cancel", "run", run.to_string()), by_server);
    let by_me = (me().user_id(), "local_key".to_owned(), None, Role::Owner, Some(room));
    assert_eq!(line("create", "room", room.to_string()), by_me);
    assert_eq!(harness.store.history(&actor.workspace, room, 0, None, 10).await.unwrap().messages[0].author, {
        domain::message::Author::Person { name: Name::parse("local").unwrap(), user_id: actor.user_id() }
    });
    harness.stop().await;
}
