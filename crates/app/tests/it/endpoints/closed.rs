//! Nobody gets in without a credential: every route, generated from the OpenAPI document, for everybody who has none.

use super::{
    binary::Binary,
    requests::{get, post, response_to, within},
};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio, time::Duration};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use tokio::{net::TcpListener, net::TcpStream, process::Command, task::JoinSet};

on_both_databases! {
    server: invariant_21_nobody_without_a_credential, invariant_21_nobody_through_a_proxy_that_adds_nothing;
    database: invariant_21_no_other_user_of_the_machine;
}

/// Paths with their own protocol, which the OpenAPI document does not have.
const OTHERS: [(Method, &str); 6] = [
    (Method::GET, "/mcp"),
    (Method::POST, "/mcp"),
    (Method::DELETE, "/mcp"),
    (Method::GET, "/sse"),
    (Method::DELETE, "/sse"),
    (Method::POST, "/message?sessionId=x"),
];
/// What everybody may read, and how a browser signs in.
const PUBLIC: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/api/session"];
/// Nobody's user on every system.
const OTHER_USER: &str = "65534";

/// Every operation that needs a credential.
pub async fn closed_operations(api: &TestClient) -> Vec<(Method, String)> {
    let document = get(api, "/openapi.json").await.expect_status(200);
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_public = operation["security"].as_array().is_some_and(Vec::is_empty);
            assert_eq!(is_public, PUBLIC.contains(&path.as_str()), "{method} {path}: only these may be public");
            if !is_public {
                found.push((method.to_uppercase().parse().unwrap(), fill(path)));
            }
        }
    }
    assert!(found.len() > 60 && found.iter().any(|(_, path)| path == "/api/ws"), "{}", found.len());
    found.extend(OTHERS.map(|(method, path)| (method, path.to_owned())));
    found
}

/// The path with an id for each of its parameters.
fn fill(path: &str) -> String {
    let id = uuid::Uuid::now_v7().to_string();
    let part = |part: &str| if part.starts_with('{') { id.clone() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn request(api: &TestClient, method: &Method, path: &str) -> RequestBuilder {
    let request = api.request(method.clone(), path).header("accept", "application/json, text/event-stream");
    if *method == Method::GET { request } else { request.json(&json!({})) }
}

async fn refused(about: &str, request: RequestBuilder) {
    let answer = response_to(request).await;
    assert!(matches!(answer.status, 401 | 403), "{about}: {answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json", "{about}");
}

async fn invariant_21_nobody_without_a_credential(operator: &TestClient) {
    let (api, own) = (operator.anonymous(), operator.base_url());
    let sign_in = api.request(Method::POST, "/api/session").header("origin", own);
    let signed_in = response_to(sign_in.json(&json!({"token": operator.token().unwrap()}))).await;
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    for (method, path) in closed_operations(operator).await {
        let about = format!("{method} {path}");
        let ask = || request(&api, &method, &path);
        refused(&format!("{about} without a credential"), ask()).await;
        refused(&format!("{about} with a wrong token"), ask().bearer_auth("grm_wrong")).await;
        refused(&format!("{about} with an agent token"), ask().bearer_auth("grp_wrong")).await;
        refused(&format!("{about} through a proxy"), ask().header("x-forwarded-for", "203.0.113.7")).await;
        // The browser is signed in, but another page asks it to send the request.
        for page in ["http://localhost:3000", "http://127.0.0.1:1", "https://evil.example", "null"] {
            let by_page = ask().header("origin", page).header("cookie", &cookie);
            refused(&format!("{about} by {page}"), by_page.header("sec-fetch-site", "same-site")).await;
        }
        let by_image = ask().header("cookie", &cookie).header("sec-fetch-site", "same-site");
        refused(&format!("{about} by an image"), by_image).await;
    }
    let rooms = api.request(Method::GET, "/api/rooms").header("cookie", &cookie);
    assert_eq!(response_to(rooms).await.status, 200, "the cookie itself is valid");
}

/// What nginx with a bare `proxy_pass`, `ssh -R`, socat or HAProxy do: the connection is from this machine.
async fn invariant_21_nobody_through_a_proxy_that_adds_nothing(operator: &TestClient) {
    let target = operator.base_url().strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut forwarding = JoinSet::new();
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let mut to = TcpStream::connect(&target).await.unwrap();
            forwarding.spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    let visitor = TestClient::new(proxy).unwrap();
    for (method, path) in closed_operations(operator).await {
        refused(&format!("{method} {path}"), request(&visitor, &method, &path)).await;
    }
    let program = json!({"name": "pwn", "command": "sh", "args": ["-c", "true"]});
    post(&visitor, "/api/mcp-servers", &program).await.expect_problem(401, "unauthorized");
    assert_eq!(get(&visitor, "/healthz").await.status, 200, "the proxy works");
}

/// Runs a program as another user, if this process may: returns whether it succeeded, and its output.
async fn as_other_user(program: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", OTHER_USER, "--regid", OTHER_USER, "--clear-groups", program]).args(arguments);
    command.stdin(Stdio::null()).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    let output = within("a program of another user", command.output()).await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The status of each request, sent by one curl of the other user.
async fn by_curl_of_other_user(folder: &Path, server: &str, operations: &[(Method, String)]) -> Vec<String> {
    let request = |(method, path): &(Method, String)| {
        let body =
            if *method == Method::GET { "" } else { "header = \"content-type: application/json\"\ndata = \"{}\"\n" };
        format!(
            "url = \"{server}{path}\"\nrequest = \"{method}\"\n{body}silent\nnoproxy = \"*\"\nmax-time = 20\n\
             output = \"/dev/null\"\nwrite-out = \"%{{http_code}}\\n\"\n"
        )
    };
    let requests: Vec<String> = operations.iter().map(request).collect();
    let file = folder.join("requests.curl");
    std::fs::write(&file, requests.join("next\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let (ok, text) = as_other_user("curl", &["--config", file.to_str().unwrap()]).await;
    assert!(ok, "{text}");
    text.lines().map(str::to_owned).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn invariant_21_no_other_user_of_the_machine(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (parent, data) = (tempfile::tempdir().unwrap(), "data");
    // Other users can reach the data folder, but not into it.
    std::fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
    binary.launch.data_dir = parent.path().join(data);
    let (server, api) = binary.serve().await;
    api.create_room("A secret room", &[]).await.unwrap();
    let folder = binary.launch.data_dir.clone();
    assert_eq!(mode(&folder), 0o700);
    let names = ["local.key", "greenroom.db", "greenroom.db-wal", "greenroom.db-shm", "greenroom.lock"];
    for name in names.into_iter().filter(|name| folder.join(name).exists()) {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    assert!(folder.join("local.key").exists());
    if database.is_sqlite() {
        let backup = parent.path().join("rooms.backup");
        let backup = backup.to_str().unwrap();
        let copied = crate::run(parent.path(), &["backup", backup, "--data-dir", folder.to_str().unwrap()]).await;
        assert_eq!((copied.code, mode(Path::new(backup))), (Some(0), 0o600), "{}", copied.stderr);
    }
    // Only root can become another user.
    if rustix::process::geteuid().is_root() && as_other_user("true", &[]).await.0 {
        for name in names {
            let path = folder.join(name).display().to_string();
            assert!(!as_other_user("cat", &[&path]).await.0, "{name}");
        }
        let operations = closed_operations(&api).await;
        let answers = by_curl_of_other_user(parent.path(), api.base_url(), &operations).await;
        assert_eq!(answers.len(), operations.len());
        for ((method, path), answer) in operations.iter().zip(answers) {
            assert!(matches!(answer.as_str(), "401" | "403"), "{method} {path} by another user: {answer}");
        }
        let key = std::fs::read_to_string(folder.join("local.key")).unwrap();
        let (program, folder) = (env!("CARGO_BIN_EXE_greenroom"), folder.display().to_string());
        for arguments in [
            &["auth", "header", "--data-dir", &folder][..],
            &["rooms", "--server", api.base_url(), "--data-dir", &folder],
            &["rooms", "--server", api.base_url()],
        ] {
            let (ok, text) = as_other_user(program, arguments).await;
            assert!(!ok && !text.contains(key.trim()) && !text.contains("A secret room"), "{arguments:?}: {text}");
        }
    }
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

/// An agent's program has its agent token, which opens its host tools and nothing else.
pub async fn assert_closed_to(server: &TestServer, agent: &TestClient) {
    for (method, path) in closed_operations(server.api()).await {
        if path == "/mcp" {
            continue;
        }
        refused(&format!("{method} {path} with an agent token"), request(agent, &method, &path)).await;
    }
}
