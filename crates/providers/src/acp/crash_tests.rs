//! Tests of agents that crash repeatedly.

use super::{
    AcpConfig, AcpProvider,
    preset::Preset,
    testing::{AcpHarness, custom_preset, endpoint, program, workspace},
};
use crate::{
    Provider as _, TurnChannel, TurnEnd, TurnOutcome, TurnRequest, jsonrpc::fake_peer::FakeRpcPeer, pool::SlotRequest,
};
use domain::{ids::RunId, run::RunError};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};
use tokio::{sync::mpsc, time::advance};

fn error(outcome: TurnOutcome) -> RunError {
    match outcome.end {
        TurnEnd::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Runs a turn whose agent crashes.
async fn crash(harness: &mut AcpHarness) {
    harness.begin().await;
    harness.accept_session().await;
    harness.accept_prompt().await;
    harness.agent = FakeRpcPeer::new().2;
    assert_eq!(error(harness.outcome().await.1).code, "program_crashed");
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_repeated_crashes_pause_further_starts() {
    let mut harness = AcpHarness::new(custom_preset());
    for _ in 0..3 {
        crash(&mut harness).await;
    }
    // If it were started, the program would be missing.
    harness.begin_next(64);
    let RunError { code, message } = error(harness.outcome().await.1);
    assert_eq!(code, "program_crashed");
    assert!(message.contains("crashed 3 times") && message.contains("next try in 10 s"), "{message}");
    advance(Duration::from_secs(10)).await;
    harness.begin_next(64);
    assert_eq!(error(harness.outcome().await.1).code, "program_missing");

    harness.begin().await;
    harness.accept_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await.1.end, TurnEnd::Completed);
    let Some(SlotRequest::Granted(mut slot)) =
        harness.shared.pool.acquire(crate::pool::ConversationKey::of(&harness.request.workspace))
    else {
        panic!()
    };
    drop(slot.take_process().await);
    drop(slot);
    // The success reset the counter; otherwise the next crash would pause starts again.
    crash(&mut harness).await;
    crash(&mut harness).await;
    harness.begin_next(64);
    assert_eq!(error(harness.outcome().await.1).code, "program_missing");
}

/// The program exists, but it cannot be started.
#[tokio::test(start_paused = true)]
async fn invariant_14_limits_failed_starts_pause_further_starts_and_spares() {
    let folder = tempfile::tempdir().unwrap();
    let program_file = folder.path().join("agent");
    fs::write(&program_file, "").unwrap();
    fs::set_permissions(&program_file, fs::Permissions::from_mode(0o700)).unwrap();
    let config = AcpConfig {
        preset: Preset::custom("tame", "agent", &[]),
        program: program(program_file.to_str().unwrap()),
        pool: 1,
        idle: Duration::from_secs(1),
        host_tools_endpoint: endpoint(),
    };
    let (provider, workspace) = (AcpProvider::new(config), workspace(folder.path()));
    let turn = || {
        let request = TurnRequest {
            run_id: RunId::generate(),
            workspace: workspace.clone(),
            prompt: "hello".into(),
            attachments: Vec::new(),
            later: crate::LaterMessages::default(),
            history: vec![].into(),
            session: None,
            meter: crate::gateway::RunMeter::default(),
        };
        let ((events, receiver), (commander, commands)) = (mpsc::channel(8), mpsc::channel(1));
        let turn = provider.turn(request, TurnChannel { events, commands, keeps_raw: false });
        async move {
            let outcome = turn.await;
            drop((receiver, commander));
            error(outcome)
        }
    };
    for _ in 0..3 {
        let RunError { code, message } = turn().await;
        assert!(code == "program_crashed" && message.contains("cannot start"), "{message}");
    }
    let RunError { code, message } = turn().await;
    assert!(code == "program_crashed" && message.contains("crashed 3 times"), "{message}");
    provider.prepare(workspace.clone());
    assert!(provider.preparing.lock().unwrap().is_empty());
    advance(Duration::from_secs(10)).await;
    provider.prepare(workspace.clone());
    assert_eq!(provider.preparing.lock().unwrap().len(), 1);
    provider.close().await;
}
