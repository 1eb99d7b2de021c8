//! Previews of ports in the sandbox of a project: a host name of their own, nothing of the API, nothing of its secrets.

use super::{
    binary::Binary,
    project_commands::{new_project, run},
    requests::{delete, get, post, response_to, within},
};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

const STOP: Duration = Duration::from_secs(30);
/// Says what it was asked, as a page; and echoes on a WebSocket, without its framing.
const SERVER: &str = r#"
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.headers.get('Upgrade') == 'echo':
            self.send_response(101); self.send_header('Connection', 'upgrade'); self.send_header('Upgrade', 'echo'); self.end_headers()
            self.wfile.write(self.rfile.read(5)[::-1]); self.close_connection = True
            return
        body = (self.path + '\n' + str(self.headers)).encode()
        self.send_response(302 if self.path == '/move' else 200)
        self.send_header('Content-Length', str(len(body))); self.send_header('Set-Cookie', 'a=1; Domain=localhost; Path=/')
        self.send_header('Location', 'http://localhost:8000/there'); self.end_headers(); self.wfile.write(body)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(('127.0.0.1', 8000), Handler).serve_forever()
"#;

/// A request to the server's address, for another host name.
fn at(api: &TestClient, host: &str, path: &str) -> reqwest::RequestBuilder {
    let plain = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    plain.get(format!("{}{path}", api.base_url())).header("host", host)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_shows_a_port_on_an_origin_of_its_own() {
    let mut binary = Binary::on(&TestDatabase::sqlite()).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let id = new_project(&api).await;
    let (ports, commands) = (format!("/api/projects/{id}/ports"), format!("/api/projects/{id}/commands"));
    assert_eq!(get(&api, &ports).await.expect_status(200), json!({"ports": []}), "the sandbox does not run yet");
    let opened = post(&api, &format!("{ports}/8000/preview"), &json!({})).await;
    let url = opened.expect_status(201)["url"].as_str().unwrap().to_owned();
    assert_eq!(opened.header("location"), url);
    let host = url.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let (label, rest) = host.split_once('.').unwrap();
    let port = api.base_url().rsplit(':').next().unwrap();
    assert_eq!((label.len(), rest), (40, format!("preview.localhost:{port}").as_str()));
    assert!(response_to(at(&api, &host, "/")).await.text.contains("does not run"));

    let put = api.request(Method::PUT, &format!("/api/projects/{id}/files/content?path=server.py")).body(SERVER);
    response_to(put).await.expect_status(200);
    post(&api, &commands, &json!({"command": "exec python3 server.py", "background": true})).await.expect_status(202);
    within("the port", async {
        while get(&api, &ports).await.expect_status(200) != json!({"ports": [{"port": 8000, "address": "127.0.0.1"}]}) {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let key = format!("Bearer {}", api.token().unwrap());
    let shown = at(&api, &host, "/api/agents?x=1")
        .header("authorization", &key)
        .header("cookie", "greenroom_session=secret; own=1")
        .header("origin", format!("http://{host}"));
    let shown = response_to(shown).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let text = shown.text.to_lowercase();
    assert!(text.starts_with("/api/agents?x=1\n") && text.contains("host: localhost:8000"), "{text}");
    assert!(text.contains("cookie: own=1") && text.contains("origin: http://localhost:8000"), "{text}");
    for secret in ["greenroom_session", "authorization", &api.token().unwrap().to_lowercase(), label] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!((shown.header("set-cookie"), shown.header("referrer-policy")), ("a=1; Path=/", "no-referrer"));
    assert_eq!(shown.header("content-security-policy"), format!("frame-ancestors 'self' {}", api.base_url()));
    let moved = response_to(at(&api, &host, "/move")).await;
    assert_eq!((moved.status, moved.header("location")), (302, "/there"));
    // A WebSocket of a dev server.
    let mut socket = TcpStream::connect(api.base_url().strip_prefix("http://").unwrap()).await.unwrap();
    let asked = format!("GET /hot HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    socket.write_all(asked.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    within("the upgrade", async {
        while !String::from_utf8_lossy(&got).contains("\r\n\r\n") {
            socket.read_buf(&mut got).await.unwrap();
        }
        socket.write_all(b"hello").await.unwrap();
        while !got.ends_with(b"olleh") {
            assert!(socket.read_buf(&mut got).await.unwrap() > 0, "{}", String::from_utf8_lossy(&got));
        }
    })
    .await;
    assert!(got.starts_with(b"HTTP/1.1 101"));

    // Names that are no preview lead nowhere, and the ports of the server itself cannot be opened.
    for other in ["x.preview.localhost", &format!("{label}x.preview.localhost"), &format!("a.{host}")] {
        let refused = response_to(at(&api, other, "/api/agents").header("authorization", &key)).await;
        assert_eq!((refused.status, refused.text.contains("has ended")), (404, true), "{other}: {refused:?}");
    }
    let refused = response_to(at(&api, "preview.localhost", "/api/agents").header("authorization", &key)).await;
    refused.expect_problem(403, "forbidden_host");
    for reserved in [0, 3128, 8080, 8081] {
        post(&api, &format!("{ports}/{reserved}/preview"), &json!({})).await.expect_problem(422, "unprocessable");
    }
    // From inside, a preview cannot be opened through the endpoints of the sandbox.
    let inside = format!(
        "exec 3<>/dev/tcp/127.0.0.1/8081; printf 'GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"
    );
    assert!(run(&api, &id, &inside).await.1.contains("401"), "a token is needed first");
    // It ends with the access of the user who opened it, and with the project.
    let created = post(&api, "/api/tokens", &json!({"name": "short"})).await.expect_status(201);
    let short = api.clone().with_token(created["token"].as_str().unwrap());
    let url = post(&short, &format!("{ports}/8000/preview"), &json!({})).await.expect_status(201);
    let theirs = url["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(response_to(at(&api, &theirs, "/")).await.status, 200);
    assert_eq!(delete(&api, &format!("/api/tokens/{}", created["id"].as_str().unwrap())).await.status, 204);
    within("the end of the preview", async {
        while response_to(at(&api, &theirs, "/")).await.status != 404 {
            sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    assert_eq!(response_to(at(&api, &host, "/")).await.status, 200, "the other one goes on");
    assert_eq!(delete(&api, &format!("/api/projects/{id}")).await.status, 204);
    within("the end of the project", async {
        while response_to(at(&api, &host, "/")).await.status == 200 {
            sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    server.terminate(STOP).await.unwrap();
}
