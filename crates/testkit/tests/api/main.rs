//! The HTTP API against its own document, with programs that others have written: a linter, two client generators, and
//! schemathesis, which sends what the document allows and what it forbids. `cargo xtask test api` installs them.

#![expect(clippy::unwrap_used, reason = "clippy treats only #[test] functions as tests, not their helpers")]

mod documented_server;

use documented_server::DocumentedServer;
use std::{fs, path::PathBuf};

/// The phases that send the same requests each time. `fuzzing` and `stateful` use ids from responses: by hand, with
/// `GREENROOM_API_PHASES=fuzzing,stateful cargo xtask test api`.
const SAME_EVERY_TIME: &str = "examples,coverage";

/// Files of this folder.
fn own(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(name)
}

#[tokio::test]
async fn the_document_has_no_lint() {
    let server = DocumentedServer::start().await;
    let config = own("redocly.yaml");
    server.node("@redocly/cli/bin/cli.js", &["lint", "openapi.json", "--config", config.to_str().unwrap()]).await;
}

/// `client.ts` does what a program does with the API, and compiles without a cast.
#[tokio::test]
async fn a_generated_typescript_client_works() {
    let server = DocumentedServer::start().await;
    let source = fs::read_to_string(own("client.ts")).unwrap();
    for cast in [" as ", "any", "@ts-", "!."] {
        assert!(!source.contains(cast), "the client needs {cast:?}");
    }
    server.node("openapi-typescript/bin/cli.js", &["openapi.json", "-o", "schema.d.ts"]).await;
    fs::write(server.path("client.ts"), source).unwrap();
    fs::write(server.path("package.json"), r#"{"type": "module"}"#).unwrap();
    let strict = ["--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext"];
    let compile = [&strict[..], &["--types", "node", "--skipLibCheck", "--outDir", "out", "client.ts"]].concat();
    server.node("typescript/bin/tsc", &compile).await;
    server.run("node", &["out/client.js", server.base_url(), server.token()]).await;
}

/// `client.py` does the same, and passes mypy's strict rules.
#[tokio::test]
async fn a_generated_python_client_works() {
    let server = DocumentedServer::start().await;
    let config = own("python-client.yaml");
    let generate = ["generate", "--path", "openapi.json", "--output-path", "greenroom_client", "--meta", "none"];
    let generate = [&generate[..], &["--config", config.to_str().unwrap()]].concat();
    let output = server.python("openapi_python_client", &generate).await;
    assert!(!output.contains("WARNING"), "the generator left something out:\n{output}");
    fs::copy(own("client.py"), server.path("client.py")).unwrap();
    // The templates of the generator break the strict rules themselves.
    let strict = ["--strict", "--follow-imports", "silent", "--cache-dir", "mypy-cache", "client.py"];
    server.python("mypy", &strict).await;
    server.python("client", &[server.base_url(), server.token()]).await;
}

/// `schemathesis.toml` says what is sent and checked.
#[tokio::test]
async fn requests_with_a_token_are_answered_as_documented() {
    let server = DocumentedServer::start().await;
    let phases = std::env::var("GREENROOM_API_PHASES").unwrap_or_else(|_| SAME_EVERY_TIME.to_owned());
    let token = format!("Authorization: Bearer {}", server.token());
    server.generate_requests(&["--phases", &phases, "--header", &token]).await;
}

/// Nothing but a refusal is expected, so a few requests for each operation are enough.
#[tokio::test]
async fn requests_without_a_token_are_answered_as_documented() {
    let server = DocumentedServer::start().await;
    server.generate_requests(&["--phases", "fuzzing", "--mode", "positive"]).await;
}
