//! Greenroom as an MCP server, used by the official libraries: TypeScript and Python, both generations of each, over each
//! transport that they speak. What a client does is in `drivers/`; here it is judged what it saw.

use crate::house::House;
use serde_json::{Value, json};
use std::path::Path;

const TOOLS: [&str; 10] = [
    "list_agents",
    "list_rooms",
    "run_agent",
    "wait_for_run",
    "post_message",
    "read_room",
    "cancel_run",
    "answer_approval",
    "list_skills",
    "get_skill",
];

/// What clients complain of although nothing is wrong, or although it is them who are.
const KNOWN: [(&str, &str); 1] = [
    // Forgets a request before it has looked at the progress that came with its answer.
    ("ts1.mjs", "progress notification for an unknown token"),
];

/// A test for each: the client, how it comes in, which era it speaks, and whether accounts are on.
macro_rules! clients {
    ($($name:ident: $driver:literal over $transport:literal, $era:literal, accounts $accounts:literal;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            examine($driver, $transport, $era, $accounts).await;
        })+
    };
}

clients! {
    typescript_1_over_http: "ts1.mjs" over "http", "legacy", accounts true;
    typescript_1_over_http_without_accounts: "ts1.mjs" over "http", "legacy", accounts false;
    typescript_1_over_sse: "ts1.mjs" over "sse", "legacy", accounts true;
    typescript_1_over_stdio: "ts1.mjs" over "stdio", "legacy", accounts true;
    typescript_2_over_http: "ts2.mjs" over "http", "legacy", accounts true;
    typescript_2_over_http_modern: "ts2.mjs" over "http", "modern", accounts true;
    typescript_2_over_http_modern_without_accounts: "ts2.mjs" over "http", "modern", accounts false;
    typescript_2_over_sse: "ts2.mjs" over "sse", "legacy", accounts true;
    typescript_2_over_stdio_modern: "ts2.mjs" over "stdio", "modern", accounts true;
    python_1_over_http: "python1.py" over "http", "legacy", accounts true;
    python_1_over_sse: "python1.py" over "sse", "legacy", accounts true;
    python_1_over_sse_without_accounts: "python1.py" over "sse", "legacy", accounts false;
    python_1_over_stdio: "python1.py" over "stdio", "legacy", accounts true;
    python_2_over_http: "python2.py" over "http", "legacy", accounts true;
    python_2_over_http_modern: "python2.py" over "http", "modern", accounts true;
    python_2_over_http_modern_without_accounts: "python2.py" over "http", "modern", accounts false;
    python_2_over_sse: "python2.py" over "sse", "legacy", accounts true;
    python_2_over_stdio_modern: "python2.py" over "stdio", "modern", accounts true;
}

async fn examine(driver: &str, transport: &str, era: &str, has_accounts: bool) {
    let house = House::open(has_accounts).await;
    let report = drive(&house, driver, transport, era).await;
    assert_eq!(report["failure"], Value::Null, "{report:#}");
    let errors: Vec<&str> = report["errors"].as_array().unwrap().iter().map(|error| error.as_str().unwrap()).collect();
    let is_known = |error: &&str| KNOWN.iter().any(|(whose, what)| driver == *whose && error.contains(what));
    assert!(errors.iter().all(is_known), "{errors:?}");

    let revision = if era == "modern" { "2026-07-28" } else { "2025-11-25" };
    // Only over HTTP does the first TypeScript library say which revision it speaks.
    if driver != "ts1.mjs" || transport == "http" {
        assert_eq!(report["protocol"], revision);
    }
    assert_eq!(report["server"], "greenroom");
    let tools: Vec<&str> = report["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
    assert!(TOOLS.iter().all(|tool| tools.contains(tool)), "{tools:?}");
    assert_eq!(report["agents"], json!(["scripted"]));
    assert_streamed(&report["run"]);
    assert_eq!(report["room"], json!({"type": "application/json", "messages": 2}));
    assert_eq!(report["listed"], true, "the room is among the resources");
    assert!(report["updated"].as_str().unwrap().starts_with("greenroom://rooms/"), "{report:#}");
    assert_eq!(report["agents_then"].as_array().unwrap().len(), 2, "{report:#}");
    assert_eq!((&report["prompts"], &report["prompt"]), (&json!(["greet"]), &json!("Say moin.")));
    assert_eq!((&report["cancel"], &report["cancelled_runs"]), (&json!("rejected"), &json!(1)));
    let refusal = report["refusal"].as_str().expect("an error that a model can read");
    assert!(refusal.contains("scripted"), "it says who is there: {refusal}");
    house.finish().await;
}

/// Progress that came while the agent was still speaking, and nothing after the answer.
fn assert_streamed(run: &Value) {
    let text = (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!((&run["status"], &run["text"], &run["plain"]), (&json!("completed"), &json!(text), &json!(text)));
    assert_eq!(run["running"], 1, "the run had not ended when the first progress came: {run:#}");
    let progress = run["progress"].as_array().unwrap();
    let steps: Vec<f64> = progress.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
    assert!(steps.len() >= 5 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    assert!(steps.iter().all(|step| *step <= text.len() as f64), "{steps:?}");
    assert!(progress.iter().all(|step| step["late"] == false), "{run:#}");
    let said = progress.iter().filter_map(|step| step["message"].as_str()).any(|said| !said.is_empty());
    assert!(said, "what is said comes with it: {run:#}");
}

async fn drive(house: &House, driver: &str, transport: &str, era: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/drivers").join(driver);
    let program = match driver {
        "python1.py" => &house.programs.python1,
        "python2.py" => &house.programs.python,
        _ => &house.programs.node,
    };
    let mut command = house.bridge().to_vec();
    command.extend(["--server".to_owned(), house.base().to_owned()]);
    let setting = json!({
        "base": house.base(), "token": house.token.clone().unwrap_or_default(), "transport": transport, "era": era,
        "modules": house.programs.modules, "command": command,
    });
    let ended = house.run(program, &[script.to_str().unwrap(), &setting.to_string()]).await;
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}
