//! Greenroom as an MCP server, tested with the MCP Inspector.

use crate::test_greenroom::{ClientOutput, TestGreenroom};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestPost;

/// How the Inspector connects.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Http(&'static str),
    Sse,
    Stdio(&'static str),
}

const TRANSPORTS: [Transport; 5] = [
    Transport::Http("legacy"),
    Transport::Http("modern"),
    Transport::Sse,
    Transport::Stdio("legacy"),
    Transport::Stdio("modern"),
];

struct Inspector<'a> {
    greenroom: &'a TestGreenroom,
    transport: Transport,
    token: Option<&'a str>,
}

impl Inspector<'_> {
    async fn run(&self, words: &[&str]) -> ClientOutput {
        let mut arguments = vec![self.greenroom.programs.inspector.to_str().unwrap().to_owned(), "--cli".into()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let base = self.greenroom.base();
        match self.transport {
            Transport::Http(era) => add(&[&format!("{base}/mcp"), "--transport", "http", "--protocol-era", era]),
            Transport::Sse => add(&[&format!("{base}/sse"), "--transport", "sse"]),
            Transport::Stdio(era) => {
                let [program, word] = self.greenroom.bridge();
                add(&["-e", &format!("GREENROOM_SERVER={base}")]);
                if let Some(token) = self.token {
                    add(&["-e", &format!("GREENROOM_TOKEN={token}")]);
                }
                add(&[&program, &word, "--protocol-era", era]);
            }
        }
        if let (Some(token), Transport::Http(_) | Transport::Sse) = (self.token, self.transport) {
            // Prevents an interactive login if the token is rejected.
            add(&["--header", &format!("Authorization: Bearer {token}"), "--stored-auth-only"]);
        }
        add(&["--connect-timeout", "60000", "--format", "json"]);
        add(words);
        self.greenroom.run(&self.greenroom.programs.node, &arguments).await
    }

    async fn result(&self, words: &[&str]) -> Value {
        let ended = self.run(words).await;
        assert_eq!(ended.code, Some(0), "{:?} {words:?}: {ended:?}", self.transport);
        let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
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

/// Returns `field` of each item of a list.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connects_over_every_transport_without_accounts() {
    let greenroom = TestGreenroom::open(false).await;
    for transport in TRANSPORTS {
        let inspector = Inspector { greenroom: &greenroom, transport, token: None };
        // Strict: schemas that a model API would reject are errors.
        let tools = inspector.result(&["--method", "tools/list", "--strict"]).await;
        assert!(each(&tools["tools"], "name").contains(&"run_agent"), "{transport:?}: {tools}");
        let agents = inspector.call("list_agents", &json!({})).await;
        assert_eq!(each(&agents["agents"], "name"), ["scripted"], "{transport:?}");
    }
    greenroom.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_gives_full_access_over_every_transport() {
    let greenroom = TestGreenroom::open(true).await;
    let api = greenroom.api();
    let room = api.create_room("A room", &[api.scripted_agent().await.unwrap()]).await.unwrap().id;
    api.post_message(room, &TestPost::new("!count 3")).await.unwrap();
    let skill = json!({
        "name": "greet", "description": "Greets. Use it to greet.", "body": "Say {{word}}.",
        "parameters": [{"name": "word", "type": "text", "required": true}],
    });
    let _: Value = api.send(api.request(Method::POST, "/api/skills").json(&skill)).await.unwrap();
    let uri = format!("greenroom://rooms/{room}");
    for transport in TRANSPORTS {
        let inspector = Inspector { greenroom: &greenroom, transport, token: greenroom.token.as_deref() };
        let tools = inspector.result(&["--method", "tools/list", "--strict"]).await;
        assert!(each(&tools["tools"], "name").contains(&"run_agent"), "{transport:?}: {tools}");
        let ran = inspector.call("run_agent", &json!({"agent": "scripted", "message": "!count 5"})).await;
        assert_eq!((&ran["status"], &ran["text"]), (&json!("completed"), &json!("1 2 3 4 5")), "{transport:?}");
        let resources = inspector.result(&["--method", "resources/list"]).await;
        let listed = each(&resources["resources"], "uri");
        assert!(
            listed.contains(&uri.as_str()) && listed.contains(&"greenroom://skills/greet"),
            "{transport:?}: {listed:?}"
        );
        let read = inspector.result(&["--method", "resources/read", "--uri", &uri]).await;
        let read: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(read["name"], "A room", "{transport:?}: {read}");
        let prompts = inspector.result(&["--method", "prompts/list"]).await;
        assert_eq!(each(&prompts["prompts"], "name"), ["greet"], "{transport:?}");
        let got = ["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "word=moin"];
        let got = inspector.result(&got).await;
        assert_eq!(got["messages"][0]["content"]["text"], "Say moin.", "{transport:?}");
    }
    greenroom.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_token_is_rejected() {
    let greenroom = TestGreenroom::open(true).await;
    for transport in TRANSPORTS {
        let inspector = Inspector { greenroom: &greenroom, transport, token: Some("grm_wrong") };
        let refused = inspector.run(&["--method", "tools/list"]).await;
        let why = match transport {
            Transport::Http(_) | Transport::Sse => "auth_required",
            // Here the Inspector does not print the server's message.
            Transport::Stdio("modern") => "Version negotiation failed",
            Transport::Stdio(_) => "GREENROOM_TOKEN",
        };
        assert!(refused.code != Some(0) && refused.stderr.contains(why), "{transport:?}: {refused:?}");
        assert!(
            !refused.stdout.contains("run_agent") && !refused.stderr.contains("grm_wrong"),
            "{transport:?}: {refused:?}"
        );
    }
    greenroom.finish().await;
}
