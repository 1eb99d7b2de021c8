//! The server with TLS of its own, as its clients see it: curl, the command line, browsers, streams.

use super::{
    binary::Binary,
    requests::{RoomFollower, get, post, response_to, wait_for_end, within},
};
use reqwest::Method;
use serde_json::json;
use std::{fs, path::Path, process::Stdio, time::Duration};
use testkit::{
    certificates::{TestCertificate, client_config},
    client::{TestClient, TestPost, socket_request},
    database::TestDatabase,
};
use tokio::{net::TcpStream, process::Command};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

const STOP: Duration = Duration::from_secs(30);

fn self_signed() -> (Binary, TestDatabase) {
    let database = TestDatabase::sqlite();
    (Binary::on(&database).with("GREENROOM_TLS__SELF_SIGNED", "true"), database)
}

fn port(api: &TestClient) -> u16 {
    api.base_url().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// The exit code and the output of curl.
async fn curl(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "30"]).args(arguments);
    let output = within("curl", command.stdin(Stdio::null()).output()).await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_clients_that_know_a_self_signed_certificate_use_https() {
    let (mut binary, _database) = self_signed();
    let (server, _) = binary.serve().await;
    let (url, data) = (server.base_url().to_owned(), binary.launch.data_dir.clone());
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let certificate = data.join("tls/self-signed.crt");
    let pem = fs::read(&certificate).unwrap();
    let api = TestClient::trusting(&url, &pem).unwrap().with_token(server.local_key());

    // curl, with and without the certificate.
    let ca = certificate.to_str().unwrap();
    let bearer = format!("authorization: Bearer {}", server.local_key());
    let rooms = format!("{url}/api/rooms");
    let (code, text) = curl(&["--cacert", ca, "--header", &bearer, "--include", &rooms]).await;
    assert!(code == Some(0) && text.contains("200 OK") && text.contains("\"rooms\""), "{code:?} {text}");
    assert!(
        !text.to_lowercase().contains("strict-transport-security"),
        "not for a certificate that browsers refuse: {text}"
    );
    let by_name = format!("https://localhost:{}/healthz", port(&api));
    assert_eq!(curl(&["--cacert", ca, &by_name]).await.0, Some(0));
    assert_eq!(curl(&[&rooms]).await.0, Some(60), "curl does not trust it by itself");
    let (_, text) = curl(&[&rooms.replace("https:", "http:")]).await;
    assert!(text.contains("https_required"), "{text}");

    // A room, a stream and a WebSocket.
    let room = api.create_room("Encrypted", &[api.scripted_agent().await.unwrap()]).await.unwrap();
    let reply = api.post_message(room.id, &TestPost::new("!count 3")).await.unwrap();
    wait_for_end(&api, reply.runs[0].id).await;
    let stream = TcpStream::connect(("127.0.0.1", port(&api))).await.unwrap();
    let connector = TlsConnector::from(client_config(&pem));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (_socket, opened) = tokio_tungstenite::client_async(socket_request(&api).unwrap(), stream).await.unwrap();
    assert_eq!(opened.status(), 101);
    server.terminate(STOP).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_over_tls_browsers_get_the_host_cookie_and_only_https_pages_use_it() {
    let (mut binary, _database) = self_signed();
    let (server, _) = binary.serve().await;
    let pem = fs::read(binary.launch.data_dir.join("tls/self-signed.crt")).unwrap();
    let api = TestClient::trusting(server.base_url(), &pem).unwrap();
    let own = server.base_url().to_owned();
    let sign_in = api.request(Method::POST, "/api/session").header("origin", &own);
    let signed_in = response_to(sign_in.json(&json!({"token": server.local_key()}))).await;
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-greenroom_session=") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let create = |page: &str| {
        let request = api.request(Method::POST, "/api/rooms").header("origin", page).header("cookie", cookie);
        response_to(request.json(&json!({"name": "A room"})))
    };
    assert_eq!(create(&own).await.status, 201);
    create(&own.replace("https:", "http:")).await.expect_problem(403, "forbidden_origin");
    // The plain name may have been planted by a page without TLS; a header of a client changes nothing.
    let planted = cookie.replace("__Host-", "");
    let request = api.request(Method::GET, "/api/rooms").header("cookie", &planted).header("x-forwarded-proto", "http");
    response_to(request).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_the_command_line_trusts_exactly_what_it_was_told_to() {
    let (mut binary, database) = self_signed();
    let (server, _) = binary.serve().await;
    let (data, url) = (binary.launch.data_dir.display().to_string(), server.base_url().to_owned());
    let elsewhere = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str]| crate::run(elsewhere.path(), arguments).await;

    let local = run(&["rooms", "--server", &url, "--data-dir", &data]).await;
    assert_eq!(local.code, Some(0), "the certificate is known from the data folder: {}", local.stderr);
    let link = run(&["auth", "link", "--server", &url, "--data-dir", &data]).await;
    assert!(link.stdout.starts_with(&format!("{url}/sign-in#code=")), "{} {}", link.stdout, link.stderr);
    assert_eq!(link.stderr, "");
    let link = run(&["auth", "link", "--server", &url, "--data-dir", &data, "--token", "grm_another"]).await;
    assert!(link.stdout.starts_with(&url) && link.stderr.contains("is not used"), "{} {}", link.stdout, link.stderr);

    // As from another machine: a token, and no data folder.
    let token = server.local_key();
    let remote = ["rooms", "--server", &url, "--token", token];
    let unknown = run(&remote).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("--fingerprint"), "{}", unknown.stderr);
    let certificate = Path::new(&data).join("tls/self-signed.crt").display().to_string();
    let fingerprint = fs::read_to_string(Path::new(&data).join("tls/served.sha256")).unwrap();
    for trust in [["--ca", &certificate], ["--fingerprint", fingerprint.trim()]] {
        let trusted = run(&[&remote[..], &trust].concat()).await;
        assert_eq!(trusted.code, Some(0), "{trust:?}: {}", trusted.stderr);
    }
    let (other, wrong) = (TestCertificate::generate(), fingerprint.trim().replace(['1', '2', '3'], "4"));
    for trust in [["--ca", other.certificate.to_str().unwrap()], ["--fingerprint", &wrong]] {
        let refused = run(&[&remote[..], &trust].concat()).await;
        assert!(refused.code == Some(1) && refused.stderr.contains("is not trusted"), "{trust:?}: {}", refused.stderr);
    }
    for bad in [&["--ca", "/nowhere/ca.pem"][..], &["--fingerprint", "AB:CD"]] {
        assert_eq!(run(&[&remote[..], bad].concat()).await.code, Some(2), "{bad:?}");
    }
    let plain = run(&["rooms", "--server", &url.replace("https:", "http:"), "--data-dir", &data]).await;
    assert!(plain.code == Some(1) && plain.stderr.contains("https://"), "{}", plain.stderr);
    let doctor = run(&["doctor", "--data-dir", &data]).await;
    assert!(doctor.stdout.contains("TLS"), "{}", doctor.stdout);
    // The flag that turned TLS on is in no configuration: the running server has the answer.
    let listen = url.strip_prefix("https://").unwrap().replace("localhost", "127.0.0.1");
    fs::write(elsewhere.path().join("greenroom.toml"), format!("[server]\nlisten = \"{listen}\"\n")).unwrap();
    let doctor = run(&["doctor", "--data-dir", &data]).await;
    let line = doctor.stdout.lines().find(|line| line.starts_with("TLS")).unwrap();
    assert!(line.contains("on, in the running server") && line.contains(fingerprint.trim()), "{}", doctor.stdout);
    server.terminate(STOP).await.unwrap();

    // Without TLS, the next server takes back what it told the command line.
    let mut plain = Binary::on(&database);
    let (server, _) = plain.serve().await;
    assert!(!Path::new(&data).join("tls/served.sha256").exists());
    let local = run(&["rooms", "--server", server.base_url(), "--data-dir", &data]).await;
    assert_eq!(local.code, Some(0), "{}", local.stderr);
    server.terminate(STOP).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_certificate_files_are_read_again_and_bad_ones_change_nothing() {
    let (old, new) = (TestCertificate::generate(), TestCertificate::generate());
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("server.pem"), folder.path().join("server.key"));
    let install = |from: &TestCertificate| {
        fs::copy(&from.certificate, &certificate).unwrap();
        fs::copy(&from.key, &key).unwrap();
    };
    install(&old);
    let database = TestDatabase::sqlite();
    let mut binary = Binary::on(&database);
    binary.launch.arguments = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]
        .map(str::to_owned)
        .to_vec();
    let (server, _) = binary.serve().await;
    let client = |trusted: &TestCertificate| {
        TestClient::trusting(server.base_url(), &trusted.pem()).unwrap().with_token(server.local_key())
    };
    // Its connection stays open.
    let first = client(&old);
    let health = get(&first, "/healthz").await;
    assert_eq!(health.header("strict-transport-security"), "max-age=63072000");
    let room = first.create_room("Old", &[first.scripted_agent().await.unwrap()]).await.unwrap();
    let mut feed = RoomFollower::start(&first, room.id).await;

    let is_served = async |trusted: &TestCertificate| {
        let request = client(trusted).request(Method::GET, "/healthz").timeout(STOP);
        request.send().await.is_ok()
    };
    install(&new);
    within("the new certificate", async {
        while !is_served(&new).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert!(!is_served(&old).await, "new connections get the new certificate");
    post(&first, &format!("/api/rooms/{}/messages", room.id), &json!({"text": "!count 2"})).await.expect_status(202);
    feed.until("the answer", |event| event.kind.ends_a_run()).await;

    fs::write(&certificate, "no certificate").unwrap();
    within("the warning", async {
        while !binary.log().contains("the old one stays") {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert!(is_served(&new).await);
    server.terminate(STOP).await.unwrap();
    let refused = binary.launch.start().await.unwrap_err();
    assert!(format!("{refused:#}").contains("log"), "it does not start with a bad certificate: {refused:#}");
    assert!(binary.log().contains("server.pem"), "{}", binary.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_an_open_address_needs_tls() {
    let database = TestDatabase::sqlite();
    let mut binary = Binary::on(&database);
    let refused = binary.run_command(&["serve", "--listen", "0.0.0.0:0"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let said = refused.stderr.lines().last().unwrap();
    assert!(said.contains("--tls-self-signed") && said.contains("--behind-tls-proxy"), "it says what to do: {said}");
    let half = binary.run_command(&["serve", "--tls-certificate", "/nowhere/a.pem"]).await;
    assert!(half.code == Some(2) && half.stderr.contains("tls.key"), "{}", half.stderr);

    binary.launch.listen = "0.0.0.0:0".into();
    binary.launch.arguments = vec!["--tls-self-signed".into()];
    let (server, _) = binary.serve().await;
    let pem = fs::read(binary.launch.data_dir.join("tls/self-signed.crt")).unwrap();
    let here = TestClient::trusting(server.base_url().replace("0.0.0.0", "127.0.0.1"), &pem).unwrap();
    assert_eq!(get(&here, "/healthz").await.status, 200);
    get(&here, "/api/rooms").await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}
