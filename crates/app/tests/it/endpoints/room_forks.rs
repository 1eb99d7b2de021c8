//! Branches: rooms that begin with the messages of another one.

use super::requests::{
    agent, data, get, journal, message_of, post, post_and_wait, post_text, response_to, room_of, wait_for_end,
};
use domain::{
    event::EventType,
    ids::RoomId,
    message::{Author, Message, MessageStatus},
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: a_branch_has_the_messages_up_to_its_message, a_branch_goes_on_and_outlives_its_room,
            only_a_finished_message_of_the_room_is_a_branch_point, a_repeated_request_makes_one_branch;
}

async fn fork(api: &TestClient, room: RoomId, body: Value) -> Value {
    post(api, &format!("/api/rooms/{room}/fork"), &body).await.expect_status(201)
}

fn id_of(room: &Value) -> RoomId {
    room["id"].as_str().unwrap().parse().unwrap()
}

async fn messages(api: &TestClient, room: RoomId) -> Vec<Message> {
    api.messages(room, None, 100).await.unwrap().messages
}

/// What a reader sees of a message, apart from its ids.
fn content(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|m| json!([m.author, m.status, m.parts, m.attachments, m.created_at])).collect()
}

async fn a_branch_has_the_messages_up_to_its_message(api: &TestClient) {
    let ann = agent(api, "Ann", json!({})).await;
    let room = room_of(api, &[ann]).await;
    post_and_wait(api, room, r#"!script [{"thinking":"hm"},{"tool_use":{"id":"t","name":"Read","input":{"a":1}}},{"tool_result":{"id":"t","content":"x"}},{"text":"done"}]"#).await;
    let second = post_and_wait(api, room, "!count 3").await;
    post_and_wait(api, room, "!count 4").await;
    let (answer, all) = (message_of(api, &second).await, messages(api, room).await);
    let forked = fork(api, room, json!({"message_id": answer.id})).await;
    assert_eq!((&forked["name"], &forked["agents"]), (&json!("A room (branch)"), &json!([ann])), "{forked}");
    assert_eq!(forked["forked_from"], json!({"room_id": room, "seq": answer.seq}));
    assert_eq!((&forked["busy"], &forked["failed"]), (&json!(false), &json!(false)), "nothing runs");
    let copies = messages(api, id_of(&forked)).await;
    assert_eq!(content(&copies), content(&all[..4]), "thinking and tools too");
    assert!(copies.iter().all(|copy| copy.run_id.is_none() && all.iter().all(|message| message.id != copy.id)));
    let events = journal(api, id_of(&forked)).await;
    let copied = events.iter().filter(|event| event.kind == EventType::MessageCopied).map(data);
    let originals: Vec<Value> = copied.map(|data| data["copy_of"].clone()).collect();
    assert_eq!(json!(originals), json!(all[..4].iter().map(|message| message.id).collect::<Vec<_>>()));
    let named = fork(api, room, json!({"message_id": all[0].id, "name": "Another way"})).await;
    assert_eq!((&named["name"], messages(api, id_of(&named)).await.len()), (&json!("Another way"), 1));
    let listed = get(api, &format!("/api/rooms/{room}")).await.expect_status(200);
    assert!(listed.get("forked_from").is_none(), "an ordinary room");
}

async fn a_branch_goes_on_and_outlives_its_room(api: &TestClient) {
    let ann = agent(api, "Ann", json!({})).await;
    let room = room_of(api, &[ann]).await;
    let first = post_and_wait(api, room, "!count 3").await;
    let branch = id_of(&fork(api, room, json!({"message_id": message_of(api, &first).await.id})).await);
    let used = async || get(api, "/api/usage").await.expect_status(200)["total"]["runs"].clone();
    let before = used().await;
    response_to(api.request(Method::DELETE, &format!("/api/rooms/{room}"))).await.expect_status(204);
    let next = post_and_wait(api, branch, "!count 2").await;
    assert_eq!(next.status, RunStatus::Completed);
    let (before, after) = (before.as_u64().unwrap(), used().await.as_u64().unwrap());
    assert_eq!(after, before + 1, "copies are no runs");
    // The agent reads the copies as what was said before, its own words as its own.
    let context = get(api, &format!("/api/runs/{}/context", next.id)).await.expect_status(200);
    let said: Vec<Value> = context["before"].as_array().unwrap().iter().map(|m| json!([m["by"], m["text"]])).collect();
    let asker = messages(api, branch).await.into_iter().find_map(|message| match message.author {
        Author::Person { name, .. } => Some(name.to_string()),
        Author::Agent { .. } => None,
    });
    assert_eq!(json!(said), json!([[asker, "!count 3"], [null, "1 2 3"]]));
    // A branch of a branch.
    let again = fork(api, branch, json!({"message_id": message_of(api, &next).await.id})).await;
    assert_eq!(messages(api, id_of(&again)).await.len(), 4);
}

async fn only_a_finished_message_of_the_room_is_a_branch_point(api: &TestClient) {
    let ann = agent(api, "Ann", json!({})).await;
    let (room, other) = (room_of(api, &[ann]).await, room_of(api, &[ann]).await);
    let elsewhere = message_of(api, &post_and_wait(api, other, "!count 1").await).await;
    let run = post_text(api, room, "!hang").await;
    let streaming = super::requests::within("the answer", async {
        loop {
            let all = messages(api, room).await;
            if let Some(message) = all.iter().find(|message| message.status == MessageStatus::Streaming) {
                return message.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for id in [streaming.id, elsewhere.id] {
        let refused = post(api, &format!("/api/rooms/{room}/fork"), &json!({"message_id": id})).await;
        assert_eq!(refused.expect_problem(422, "unprocessable")["pointer"], "/message_id");
    }
    // Its question is one, and the branch has nothing of the answer in progress.
    let question = messages(api, room).await[0].id;
    let branch = fork(api, room, json!({"message_id": question})).await;
    assert_eq!(messages(api, id_of(&branch)).await.len(), 1);
    api.cancel_run(run).await.unwrap();
    let stopped = wait_for_end(api, run).await;
    let partial = fork(api, room, json!({"message_id": message_of(api, &stopped).await.id})).await;
    assert_eq!(messages(api, id_of(&partial)).await[1].status, MessageStatus::Partial);
    post(api, &format!("/api/rooms/{}/fork", RoomId::generate()), &json!({"message_id": question}))
        .await
        .expect_problem(404, "not_found");
}

async fn a_repeated_request_makes_one_branch(api: &TestClient) {
    let room = room_of(api, &[]).await;
    let said = post(api, &format!("/api/rooms/{room}/messages"), &json!({"text": "hello"})).await.expect_status(202);
    let body = json!({"message_id": said["message"]["id"]});
    let send = async || {
        let request = api.request(Method::POST, &format!("/api/rooms/{room}/fork"));
        response_to(request.header("idempotency-key", "one-branch").json(&body)).await.expect_status(201)["id"].clone()
    };
    assert_eq!(send().await, send().await);
}
