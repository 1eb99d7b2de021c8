//! Agents that break off, again and again.

use super::{
    Acp, Config,
    preset::Preset,
    testing::{Stage, door, place, program, tame},
};
use crate::{Provider as _, TurnChannel, TurnEnd, TurnOutcome, TurnRequest, jsonrpc::far_end::FarEnd, pool::Asked};
use domain::{ids::RunId, run::RunError};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};
use tokio::{sync::mpsc, time::advance};

fn error(outcome: TurnOutcome) -> RunError {
    match outcome.end {
        TurnEnd::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A turn whose agent dies in the middle.
async fn crash(stage: &mut Stage) {
    stage.begin().await;
    stage.opened().await;
    stage.prompted().await;
    stage.agent = FarEnd::new().2;
    assert_eq!(error(stage.outcome().await.1).code, "program_crashed");
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_an_agent_that_crashes_again_and_again_is_not_started_for_a_while() {
    let mut stage = Stage::new(tame());
    for _ in 0..3 {
        crash(&mut stage).await;
    }
    // Were it started, its program would be missing.
    stage.again(64);
    let RunError { code, message } = error(stage.outcome().await.1);
    assert_eq!(code, "program_crashed");
    assert!(message.contains("crashed 3 times") && message.contains("next try in 10 s"), "{message}");
    advance(Duration::from_secs(10)).await;
    stage.again(64);
    assert_eq!(error(stage.outcome().await.1).code, "program_missing");

    stage.begin().await;
    stage.opened().await;
    let (prompt, _) = stage.prompted().await;
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await.1.end, TurnEnd::Completed);
    let Some(Asked::Granted(mut kept)) = stage.shared.pool.ask(super::turn::key(&stage.request.place)) else {
        panic!()
    };
    drop(kept.resident().await);
    drop(kept);
    // What was before the success no longer counts, else the next crash would mean a rest.
    crash(&mut stage).await;
    crash(&mut stage).await;
    stage.again(64);
    assert_eq!(error(stage.outcome().await.1).code, "program_missing");
}

/// The program is there, but there is nothing to start it with.
#[tokio::test(start_paused = true)]
async fn invariant_14_limits_one_that_cannot_start_is_not_tried_with_every_message_nor_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("agent");
    fs::write(&there, "").unwrap();
    fs::set_permissions(&there, fs::Permissions::from_mode(0o700)).unwrap();
    let config = Config {
        preset: Preset::custom("tame", "agent", &[]),
        program: program(there.to_str().unwrap()),
        pool: 1,
        idle: Duration::from_secs(1),
        door: door(),
    };
    let (provider, place) = (Acp::new(config), place(folder.path()));
    let turn = || {
        let request = TurnRequest {
            run_id: RunId::generate(),
            place: place.clone(),
            prompt: "hello".into(),
            history: vec![].into(),
            session: None,
            memory: crate::Memory::default(),
        };
        let ((events, told), (commander, commands)) = (mpsc::channel(8), mpsc::channel(1));
        let turn = provider.turn(request, TurnChannel { events, commands });
        async move {
            let outcome = turn.await;
            drop((told, commander));
            error(outcome)
        }
    };
    for _ in 0..3 {
        let RunError { code, message } = turn().await;
        assert!(code == "program_crashed" && message.contains("cannot start"), "{message}");
    }
    let RunError { code, message } = turn().await;
    assert!(code == "program_crashed" && message.contains("crashed 3 times"), "{message}");
    provider.prepare(place.clone());
    assert!(provider.preparing.lock().unwrap().is_empty());
    advance(Duration::from_secs(10)).await;
    provider.prepare(place.clone());
    assert_eq!(provider.preparing.lock().unwrap().len(), 1);
    provider.close().await;
}
