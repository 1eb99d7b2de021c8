//! Greenroom as an MCP server, used by the official libraries: TypeScript and Python, two versions of each, over each
//! supported transport. The client scripts are in `drivers/`; this file checks their reports.

use crate::test_greenroom::TestGreenroom;
use serde_json::{Value, json};
use std::path::Path;

const TOOLS: [&str; 11] = [
    "list_agents",
    "list_rooms",
    "run_agent",
    "wait_for_run",
    "post_message",
    "read_room",
    "cancel_run",
    "list_approvals",
    "answer_approval",
    "list_skills",
    "get_skill",
];

/// Known client errors that are not caused by the server.
const KNOWN: [(&str, &str); 2] = [
    // Both drop a request before processing progress that arrived with its answer: notifications are handled in a
    // microtask, answers at once.
    ("ts1.mjs", "progress notification for an unknown token"),
    ("ts2.mjs", "progress notification for an unknown token"),
];

/// Defines a test per line: the client, its transport and era, and whether accounts are on.
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
    let greenroom = TestGreenroom::open(has_accounts).await;
    let report = drive(&greenroom, driver, transport, era).await;
    assert_eq!(report["failure"], Value::Null, "{report:#}");
    let errors: Vec<&str> = report["errors"].as_array().unwrap().iter().map(|error| error.as_str().unwrap()).collect();
    let is_known = |error: &&str| KNOWN.iter().any(|(whose, what)| driver == *whose && error.contains(what));
    assert!(errors.iter().all(is_known), "{errors:?}");

    let revision = if era == "modern" { "2026-07-28" } else { "2025-11-25" };
    // The first TypeScript library reports its revision only over HTTP.
    if driver != "ts1.mjs" || transport == "http" {
        assert_eq!(report["protocol"], revision);
    }
    assert_eq!(report["server"], "greenroom");
    let tools: Vec<&str> = report["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
    assert!(TOOLS.iter().all(|tool| tools.contains(tool)), "{tools:?}");
    assert_eq!(report["agents"], json!(["scripted"]));
    assert_streamed(&report["run"]);
    assert_eq!(report["room"], json!({"type": "application/json", "messages": 2}));
    assert_eq!(report["listed"], true, "the room must be listed as a resource");
    assert!(report["updated"].as_str().unwrap().starts_with("greenroom://rooms/"), "{report:#}");
    assert_eq!(report["agents_then"].as_array().unwrap().len(), 2, "{report:#}");
    assert_eq!((&report["prompts"], &report["prompt"]), (&json!(["greet"]), &json!("Say moin.")));
    assert_eq!((&report["cancel"], &report["cancelled_runs"]), (&json!("rejected"), &json!(1)));
    let refusal = report["refusal"].as_str().expect("the error is readable text");
    assert!(refusal.contains("scripted"), "the error must list the agents: {refusal}");
    greenroom.finish().await;
}

/// Asserts that progress arrived while the run was active, and none after the answer.
fn assert_streamed(run: &Value) {
    let text = (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!((&run["status"], &run["text"], &run["plain"]), (&json!("completed"), &json!(text), &json!(text)));
    assert_eq!(run["running"], 1, "the run must be active at the first progress: {run:#}");
    let progress = run["progress"].as_array().unwrap();
    let steps: Vec<f64> = progress.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
    assert!(steps.len() >= 5 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    assert!(steps.iter().all(|step| *step <= text.len() as f64), "{steps:?}");
    assert!(progress.iter().all(|step| step["late"] == false), "{run:#}");
    let said = progress.iter().filter_map(|step| step["message"].as_str()).any(|said| !said.is_empty());
    assert!(said, "progress must contain text: {run:#}");
}

async fn drive(greenroom: &TestGreenroom, driver: &str, transport: &str, era: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/drivers").join(driver);
    let program = match driver {
        "python1.py" => &greenroom.programs.python1,
        "python2.py" => &greenroom.programs.python,
        _ => &greenroom.programs.node,
    };
    let mut command = greenroom.bridge().to_vec();
    command.extend(["--server".to_owned(), greenroom.base().to_owned()]);
    let setting = json!({
        "base": greenroom.base(), "token": greenroom.token.clone().unwrap_or_default(), "transport": transport, "era": era,
        "modules": greenroom.programs.modules, "command": command,
    });
    let ended = greenroom.run(program, &[script.to_str().unwrap(), &setting.to_string()]).await;
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}
