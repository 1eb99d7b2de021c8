//! Agents: create, update, delete; names are unique per owner.

use crate::{
    idempotent::spec,
    scene::{append, by, me, name, room, stranger},
};
use domain::{agent::AgentSpec, ids::AgentId, limits::LimitOverrides};
use store::{
    StoreError,
    journal::{Commit, RowChange},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        an_agent_reads_back_as_created,
        agent_names_are_unique_per_owner,
        a_deleted_agent_is_not_found_and_its_name_is_free,
        agents_are_listed_in_the_order_they_joined;
}

async fn an_agent_reads_back_as_created(database: TestDatabase) {
    let store = database.open().await;
    let full = AgentSpec {
        model: Some("m\u{0}".into()),
        system_prompt: Some("line one\r\nline two 🎭".into()),
        skills: vec!["a".into(), "b".into()],
        mcp_servers: vec!["files".into()],
        limits: LimitOverrides { turns: Some(3), ..LimitOverrides::default() },
        ..spec("Zoë")
    };
    let made = store.create_agent(&by(&me()), full.clone(), None).await.unwrap();
    assert_eq!(made.spec, full);
    assert_eq!(store.agent(&me(), made.id).await.unwrap(), made);
    let second = store.create_agent(&by(&me()), spec("second"), None).await.unwrap();
    assert_eq!(store.agents(&me()).await.unwrap(), [made.clone(), second]);

    let changed = store.update_agent(&by(&me()), made.id, spec("Zoë"), None).await.unwrap();
    assert_eq!((changed.spec.clone(), changed.created_at), (spec("Zoë"), made.created_at));
    assert!(changed.updated_at >= made.updated_at);
    assert_eq!(store.agent(&me(), made.id).await.unwrap(), changed);
}

async fn agent_names_are_unique_per_owner(database: TestDatabase) {
    let store = database.open().await;
    let first = store.create_agent(&by(&me()), spec("one"), None).await.unwrap();
    let taken = store.create_agent(&by(&me()), spec("one"), None).await;
    assert!(matches!(taken, Err(StoreError::AgentNameTaken(name)) if name == "one"));
    store.create_agent(&by(&stranger()), spec("one"), None).await.unwrap();
    store.create_agent(&by(&me()), spec("One"), None).await.unwrap();
    let two = store.create_agent(&by(&me()), spec("two"), None).await.unwrap();
    let taken = store.update_agent(&by(&me()), two.id, spec("one"), None).await;
    assert!(matches!(taken, Err(StoreError::AgentNameTaken(_))));
    assert_eq!(store.agent(&me(), two.id).await.unwrap().spec.name, name("two"));
    store.update_agent(&by(&me()), first.id, spec("three"), None).await.unwrap();
    store.update_agent(&by(&me()), two.id, spec("one"), None).await.unwrap();
}

async fn a_deleted_agent_is_not_found_and_its_name_is_free(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let agent = store.create_agent(&by(&me()), spec("one"), None).await.unwrap();
    let join = Commit { changes: vec![RowChange::Join { agent_id: agent.id }], ..append(room, Vec::new()) };
    store.commit(join).await.unwrap();
    assert_eq!(store.room(&me(), room).await.unwrap().agents, [agent.id]);
    store.delete_agent(&by(&me()), agent.id, None).await.unwrap();
    assert!(matches!(store.delete_agent(&by(&me()), agent.id, None).await, Err(StoreError::NotFound)));
    assert!(matches!(store.agent(&me(), agent.id).await, Err(StoreError::NotFound)));
    assert!(matches!(store.update_agent(&by(&me()), agent.id, spec("x"), None).await, Err(StoreError::NotFound)));
    assert!(store.agents(&me()).await.unwrap().is_empty());
    assert!(store.room_with_agents(&me(), room).await.unwrap().1.is_empty(), "it leaves every room");
    assert!(store.room(&me(), room).await.unwrap().agents.is_empty());
    assert!(store.rooms(&me(), 10).await.unwrap()[0].room.agents.is_empty());
    let again = store.create_agent(&by(&me()), spec("one"), None).await.unwrap();
    assert_ne!(again.id, agent.id);
}

async fn agents_are_listed_in_the_order_they_joined(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let mut agents: Vec<AgentId> = Vec::new();
    for n in 0..3 {
        agents.push(store.create_agent(&by(&me()), spec(&n.to_string()), None).await.unwrap().id);
    }
    let [a, b, c] = agents[..] else { unreachable!() };
    let change = |changes| Commit { changes, ..append(room, Vec::new()) };
    let join = |agent_id| RowChange::Join { agent_id };
    store.commit(change(vec![join(c), join(a), join(c), join(b)])).await.unwrap();
    let agent_ids = |agents: Vec<domain::agent::Agent>| agents.into_iter().map(|agent| agent.id).collect::<Vec<_>>();
    assert_eq!(agent_ids(store.room_with_agents(&me(), room).await.unwrap().1), [c, a, b]);
    assert_eq!(store.room(&me(), room).await.unwrap().agents, [c, a, b]);
    store.commit(change(vec![RowChange::Leave { agent_id: c }])).await.unwrap();
    store.commit(change(vec![join(c)])).await.unwrap();
    assert_eq!(store.room(&me(), room).await.unwrap().agents, [a, b, c], "an agent that joins again is last");
    assert!(store.room_with_agents(&me(), other).await.unwrap().1.is_empty());
    let listed = store.rooms(&me(), 10).await.unwrap();
    assert_eq!(listed.iter().find(|listed| listed.room.id == room).unwrap().room.agents, [a, b, c]);
}
