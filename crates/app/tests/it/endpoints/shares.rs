//! What one workspace may take: slots of the workers, places in the queue.

use super::{
    binary::Binary,
    requests::{agent, get, post, post_text, room_of, within},
};
use domain::{event::EventType, position::Position, run::RunStatus};
use serde_json::json;
use std::time::{Duration, Instant};
use testkit::{
    client::{SseReader, TestClient},
    database::TestDatabase,
};

on_both_databases! {
    database: h5_64_hanging_runs_of_one_user_do_not_delay_another, h5_a_workspace_cannot_fill_the_queue;
}

/// The clients of two users with a workspace each.
async fn two_users(binary: &mut Binary) -> [String; 2] {
    let mut tokens = Vec::new();
    for user in ["ada", "bob"] {
        let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        tokens.push(made.stdout.trim().to_owned());
    }
    tokens.try_into().unwrap()
}

async fn h5_64_hanging_runs_of_one_user_do_not_delay_another(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "hangs", json!({})).await;
    for _ in 0..64 {
        let room = room_of(&ada, &[hers]).await;
        post_text(&ada, room, "!hang").await;
    }
    let his = agent(&bob, "answers", json!({})).await;
    let room = room_of(&bob, &[his]).await;
    let mut feed = SseReader::connect(&bob, room, &Position { epoch: None, seq: 0 }).await.unwrap();
    let asked = Instant::now();
    post_text(&bob, room, "!count 3").await;
    within("the first token", async {
        while feed.next_event().await.unwrap().unwrap().kind != EventType::ContentDelta {}
    })
    .await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(1), "the first token came after {took:?}");
    let running = get(&ada, "/api/runs?status=running&limit=100").await.expect_status(200);
    assert_eq!(running["runs"].as_array().unwrap().len(), 48, "three quarters of the slots");
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn h5_a_workspace_cannot_fill_the_queue(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_RUNS__UNFINISHED_PER_WORKSPACE", "5");
    let [ada, bob] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let one_room = async |api: &TestClient| {
        let agent = agent(api, "hangs", json!({})).await;
        room_of(api, &[agent]).await
    };
    let (hers, his) = (one_room(&ada).await, one_room(&bob).await);
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(post_text(&ada, hers, "!hang").await);
    }
    let message = json!({"text": "one more"});
    let refused = post(&ada, &format!("/api/rooms/{hers}/messages"), &message).await.expect_problem(429, "queue_full");
    assert!(refused["detail"].as_str().unwrap().contains("cancel"), "{refused}");
    post(&bob, &format!("/api/rooms/{his}/messages"), &message).await.expect_status(202);
    post(&ada, &format!("/api/runs/{}/cancel", runs[4]), &json!({})).await.expect_status(200);
    post(&ada, &format!("/api/rooms/{hers}/messages"), &message).await.expect_status(202);
    assert_eq!(ada.run(runs[4]).await.unwrap().status, RunStatus::Cancelled);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
