//! The audit log: bounded, per workspace, and in the transaction of its change.

use crate::{
    idempotent::spec,
    scene::{by, me, stranger},
};
use store::StoreError;
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_refused_change_leaves_no_entry_and_workspaces_see_their_own;
}

async fn a_refused_change_leaves_no_entry_and_workspaces_see_their_own(database: TestDatabase) {
    let store = database.open().await;
    let agent = store.create_agent(&by(&me()), spec("one"), None).await.unwrap();
    let taken = store.create_agent(&by(&me()), spec("one"), None).await;
    assert!(matches!(taken, Err(StoreError::AgentNameTaken(_))), "{taken:?}");
    store.create_agent(&by(&stranger()), spec("one"), None).await.unwrap();
    let log = store.audit_log(&me(), 10).await.unwrap();
    let lines: Vec<(&str, &str, &str)> =
        log.iter().map(|entry| (entry.action.as_str(), entry.object.as_str(), entry.object_id.as_str())).collect();
    assert_eq!(lines, [("create", "agent", agent.id.to_string().as_str())]);
    store.delete_expired_audit().await.unwrap();
    assert_eq!(store.audit_log(&me(), 10).await.unwrap(), log, "young entries stay");
    assert_eq!(store.audit_log(&stranger(), 10).await.unwrap().len(), 1);
}
