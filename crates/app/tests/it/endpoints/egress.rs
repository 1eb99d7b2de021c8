//! Where MCP servers of others than the operator may be.

use super::{
    binary::Binary,
    requests::{ApiResponse, post, within},
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testkit::{client::TestClient, database::TestDatabase};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, task::JoinSet};

on_both_databases! {
    database: m1_only_the_operator_reaches_addresses_that_are_not_public;
}

const STOP: Duration = Duration::from_secs(30);

/// Counts the connections to a port of this machine. Each is answered with a secret.
struct InternalService {
    port: u16,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl InternalService {
    async fn start() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<AtomicUsize>::default();
        let (mut tasks, counted) = (JoinSet::new(), Arc::clone(&connections));
        tasks.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let answer =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\nAKIAIOSFODNN7E";
                drop(client.write_all(answer.as_bytes()).await);
            }
        });
        Self { port, connections, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn test(api: &TestClient, name: &str, kind: &str, url: String) -> ApiResponse {
    post(api, "/api/mcp-servers", &json!({"name": name, "type": kind, "url": url})).await.expect_status(201);
    post(api, &format!("/api/mcp-servers/{name}/test"), &json!({})).await
}

async fn m1_only_the_operator_reaches_addresses_that_are_not_public(database: TestDatabase) {
    let service = InternalService::start().await;
    let port = service.port;
    // Both servers read the secrets of the MCP servers.
    let secrets = database.folder().join("shared-secrets.key").display().to_string();
    let mut binary = Binary::on(&database).with("GREENROOM_STORE__SECRETS_KEY_FILE", &secrets);
    let mut tokens = Vec::new();
    for user in ["local", "eve"] {
        tokens.push(
            binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned(),
        );
    }
    let (server, api) = binary.serve().await;
    let (operator, eve) = (api.clone().with_token(&tokens[0]), api.with_token(&tokens[1]));
    let hosts = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
    ];
    for (number, host) in hosts.iter().enumerate() {
        for kind in ["http", "sse"] {
            let tested = test(&eve, &format!("{kind}{number}"), kind, format!("http://{host}:{port}/mcp")).await;
            assert!(tested.text.contains("mcp.egress_allow"), "{host}: {tested:?}");
            assert!(!tested.text.contains("AKIA"), "{host}: {tested:?}");
        }
    }
    assert_eq!(service.connections(), 0, "nothing may be connected to");
    test(&operator, "own", "http", format!("http://localhost:{port}/mcp")).await.expect_status(200);
    assert!(service.connections() > 0, "the operator may reach everything");
    within("its end", server.terminate(STOP)).await.unwrap();

    // The operator allows an address, and another name by its host.
    let before = service.connections();
    let mut binary = Binary::on(&database)
        .with("GREENROOM_STORE__SECRETS_KEY_FILE", &secrets)
        .with("GREENROOM_MCP__EGRESS_ALLOW", "127.0.0.0/8");
    let (server, api) = binary.serve().await;
    let eve = api.with_token(&tokens[1]);
    let path = "/api/mcp-servers/http0/test";
    let tested = post(&eve, path, &json!({})).await;
    assert_eq!(tested.expect_status(200)["ok"], false, "it is not an MCP server");
    assert!(service.connections() > before && !tested.text.contains("egress"), "{tested:?}");
    let refused = post(&eve, "/api/mcp-servers/http8/test", &json!({})).await;
    assert!(refused.text.contains("mcp.egress_allow"), "{refused:?}");
    within("its end", server.terminate(STOP)).await.unwrap();
}
