//! Greenroom as an MCP server, looked at with the protocol's own Inspector.

use crate::house::{Ended, House};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::Post;

/// How the Inspector comes in.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http(&'static str),
    Sse,
    Stdio(&'static str),
}

const WAYS: [Way; 5] = [Way::Http("legacy"), Way::Http("modern"), Way::Sse, Way::Stdio("legacy"), Way::Stdio("modern")];

struct Inspector<'a> {
    house: &'a House,
    way: Way,
    token: Option<&'a str>,
}

impl Inspector<'_> {
    async fn ended(&self, words: &[&str]) -> Ended {
        let mut arguments = vec![self.house.programs.inspector.to_str().unwrap().to_owned(), "--cli".into()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let base = self.house.base();
        match self.way {
            Way::Http(era) => add(&[&format!("{base}/mcp"), "--transport", "http", "--protocol-era", era]),
            Way::Sse => add(&[&format!("{base}/sse"), "--transport", "sse"]),
            Way::Stdio(era) => {
                let [program, word] = self.house.bridge();
                add(&["-e", &format!("GREENROOM_SERVER={base}")]);
                if let Some(token) = self.token {
                    add(&["-e", &format!("GREENROOM_TOKEN={token}")]);
                }
                add(&[&program, &word, "--protocol-era", era]);
            }
        }
        if let (Some(token), Way::Http(_) | Way::Sse) = (self.token, self.way) {
            // Without asking a person to log in where the token is not taken.
            add(&["--header", &format!("Authorization: Bearer {token}"), "--stored-auth-only"]);
        }
        add(&["--connect-timeout", "60000", "--format", "json"]);
        add(words);
        self.house.run(&self.house.programs.node, &arguments).await
    }

    async fn result(&self, words: &[&str]) -> Value {
        let ended = self.ended(words).await;
        assert_eq!(ended.code, Some(0), "{:?} {words:?}: {ended:?}", self.way);
        let said: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        said.get("result").cloned().unwrap_or(said)
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let words = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
        let called = self.result(&words).await;
        assert_ne!(called["isError"], true, "{called}");
        called["structuredContent"].clone()
    }
}

/// `field` of each item of a list.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_accounts_it_comes_in_by_every_way() {
    let house = House::open(false).await;
    for way in WAYS {
        let inspector = Inspector { house: &house, way, token: None };
        // Strict: schemas that some model's API would refuse are an error.
        let tools = inspector.result(&["--method", "tools/list", "--strict"]).await;
        assert!(each(&tools["tools"], "name").contains(&"run_agent"), "{way:?}: {tools}");
        let agents = inspector.call("list_agents", &json!({})).await;
        assert_eq!(each(&agents["agents"], "name"), ["scripted"], "{way:?}");
    }
    house.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_token_it_sees_and_does_everything_by_every_way() {
    let house = House::open(true).await;
    let api = house.api();
    let room = api.create_room("A room", &[api.scripted_agent().await.unwrap()]).await.unwrap().id;
    api.post_message(room, &Post::new("!count 3")).await.unwrap();
    let skill = json!({
        "name": "greet", "description": "Greets. Use it to greet.", "body": "Say {{word}}.",
        "parameters": [{"name": "word", "type": "text", "required": true}],
    });
    let _: Value = api.send(api.request(Method::POST, "/api/skills").json(&skill)).await.unwrap();
    let uri = format!("greenroom://rooms/{room}");
    for way in WAYS {
        let inspector = Inspector { house: &house, way, token: house.token.as_deref() };
        let tools = inspector.result(&["--method", "tools/list", "--strict"]).await;
        assert!(each(&tools["tools"], "name").contains(&"run_agent"), "{way:?}: {tools}");
        let ran = inspector.call("run_agent", &json!({"agent": "scripted", "message": "!count 5"})).await;
        assert_eq!((&ran["status"], &ran["text"]), (&json!("completed"), &json!("1 2 3 4 5")), "{way:?}");
        let resources = inspector.result(&["--method", "resources/list"]).await;
        let listed = each(&resources["resources"], "uri");
        assert!(listed.contains(&uri.as_str()) && listed.contains(&"greenroom://skills/greet"), "{way:?}: {listed:?}");
        let read = inspector.result(&["--method", "resources/read", "--uri", &uri]).await;
        let read: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(read["name"], "A room", "{way:?}: {read}");
        let prompts = inspector.result(&["--method", "prompts/list"]).await;
        assert_eq!(each(&prompts["prompts"], "name"), ["greet"], "{way:?}");
        let got = ["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "word=moin"];
        let got = inspector.result(&got).await;
        assert_eq!(got["messages"][0]["content"]["text"], "Say moin.", "{way:?}");
    }
    house.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_wrong_token_it_does_not_come_in() {
    let house = House::open(true).await;
    for way in WAYS {
        let inspector = Inspector { house: &house, way, token: Some("grm_wrong") };
        let refused = inspector.ended(&["--method", "tools/list"]).await;
        let why = match way {
            Way::Http(_) | Way::Sse => "auth_required",
            // Here it keeps the server's words to itself.
            Way::Stdio("modern") => "Version negotiation failed",
            Way::Stdio(_) => "GREENROOM_TOKEN",
        };
        assert!(refused.code != Some(0) && refused.side.contains(why), "{way:?}: {refused:?}");
        assert!(!refused.out.contains("run_agent") && !refused.side.contains("grm_wrong"), "{way:?}: {refused:?}");
    }
    house.finish().await;
}
