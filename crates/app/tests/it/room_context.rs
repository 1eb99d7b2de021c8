//! What a model gets in a room of several agents, for each API: who it is, who is here, who said what, and in which order.

use crate::{
    direct::DirectFixture,
    endpoints::requests::{agent, post_body, runs_of, wait_for_end},
};
use domain::run::RunStatus;
use serde_json::{Map, Value, json};

/// The parts of a request that are the context of the model, whatever its API calls them.
const PARTS: [&str; 6] = ["system", "systemInstruction", "instructions", "messages", "input", "contents"];

/// Ann is scripted and speaks first; the other agent answers twice after her, then it is asked alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_context_of_each_model_api() {
    let fixture = DirectFixture::open().await;
    let api = fixture.api();
    for provider in ["anthropic", "openai", "openai_responses", "google"] {
        let ann = agent(api, &format!("Ann for {provider}"), json!({})).await;
        let settings = json!({"provider": provider, "model": "double", "system_prompt": "Be brief."});
        let bob = agent(api, &format!("Bob on {provider}"), settings).await;
        let first = json!({"members": {ann.to_string(): {"priority": 1}}});
        let room = api.create_room_with("Two", &[ann, bob], first).await.unwrap().id;
        for text in ["!count 2", "!count 3"] {
            let posted = post_body(api, room, json!({"text": text})).await.expect_status(202);
            wait_for_end(api, runs_of(&posted)[0]).await;
            crate::endpoints::tape::finished(api, room).await;
        }
        let asked = json!({"text": "!recall", "mentions": [bob]});
        let posted = post_body(api, room, asked).await.expect_status(202);
        let run = wait_for_end(api, runs_of(&posted)[0]).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        let request = fixture.models.requests().pop().unwrap().body.clone();
        let is_context = |(name, _): &(&String, &Value)| PARTS.contains(&name.as_str());
        let context: Map<String, Value> = request
            .as_object()
            .unwrap()
            .iter()
            .filter(is_context)
            .map(|(name, part)| (name.clone(), part.clone()))
            .collect();
        insta::assert_json_snapshot!(format!("context_{provider}"), context);
    }
    fixture.close().await;
}
