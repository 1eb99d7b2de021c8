//! The audit log: bounded, per workspace, and in the transaction of its change.

use crate::{
    idempotent::spec,
    scene::{by, me, stranger},
};
use store::{AuditLimits, StoreError};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_refused_change_leaves_no_entry_and_workspaces_see_their_own,
        m10_a_noisy_workspace_does_not_push_out_the_entries_of_others;
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

async fn m10_a_noisy_workspace_does_not_push_out_the_entries_of_others(database: TestDatabase) {
    let store = database.open().await;
    store.create_agent(&by(&me()), spec("mine"), None).await.unwrap();
    for n in 0..12 {
        store.create_agent(&by(&stranger()), spec(&format!("agent-{n}")), None).await.unwrap();
    }
    let (mine, theirs) = (me(), stranger());
    let count = async |owner| store.audit_log(owner, 100).await.unwrap().len();
    store.delete_audit_beyond(AuditLimits { workspace: 10, total: 100 }).await.unwrap();
    assert_eq!((count(&mine).await, count(&theirs).await), (1, 10), "the limit of one workspace");
    store.delete_audit_beyond(AuditLimits { workspace: 10, total: 5 }).await.unwrap();
    assert_eq!((count(&mine).await, count(&theirs).await), (1, 4), "the limit of all: the noisy one gives way");
    let newest = store.audit_log(&stranger(), 1).await.unwrap();
    assert!(
        newest[0].created_at >= store.audit_log(&stranger(), 4).await.unwrap()[3].created_at,
        "the oldest are deleted"
    );
}
