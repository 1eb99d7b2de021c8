//! Browser sessions: a token is exchanged for a cookie, which works only for pages of this server.

use super::{
    binary::Binary,
    requests::{get, post, response_to, room, within},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

on_both_databases! {
    server: nobody_is_signed_in_without_a_credential, c2_a_link_signs_one_browser_in, m4_a_link_does_not_run_an_agent,
            h1_a_body_without_a_preflight_needs_more_than_a_cookie, l4_a_page_of_the_other_scheme_is_another_page;
    database: cookie_has_the_access_of_its_token, cookie_works_for_own_pages_only, browser_session_ends,
              c2_the_printed_link_is_in_no_log_and_a_new_key_ends_sessions;
}

const STOP: Duration = Duration::from_secs(30);

async fn nobody_is_signed_in_without_a_credential(operator: &TestClient) {
    let api = &operator.anonymous();
    let session = get(api, "/api/session").await.expect_status(200);
    assert_eq!(session, json!({"accounts": true, "signed_in": false, "name": null}));
    let session = get(operator, "/api/session").await.expect_status(200);
    assert_eq!(session, json!({"accounts": true, "signed_in": true, "name": "local"}));
    post(api, "/api/session", &json!({"token": "grm_wrong"})).await.expect_problem(401, "unauthorized");
    post(api, "/api/session", &json!({"token": 7})).await.expect_problem(400, "invalid_request");
    for neither_or_both in [json!({}), json!({"token": "grm_x", "code": "grm_y"})] {
        post(api, "/api/session", &neither_or_both).await.expect_problem(422, "unprocessable");
    }
    assert_eq!(
        response_to(api.request(Method::DELETE, "/api/session")).await.status,
        204,
        "signing out without a session succeeds"
    );
}

async fn c2_a_link_signs_one_browser_in(operator: &TestClient) {
    let api = &operator.anonymous();
    post(api, "/api/session/links", &json!({})).await.expect_problem(401, "unauthorized");
    let all = json!({"name": "laptop", "scopes": ["read", "run", "approve", "admin"]});
    let token = post(operator, "/api/tokens", &all).await.expect_status(201);
    let with_token = api.clone().with_token(token["token"].as_str().unwrap());
    post(&with_token, "/api/session/links", &json!({})).await.expect_problem(403, "forbidden");

    let link = post(operator, "/api/session/links", &json!({})).await.expect_status(201);
    let (page, code) = link["url"].as_str().unwrap().split_once("#code=").unwrap();
    assert_eq!(page, format!("{}/sign-in", api.base_url()));
    assert!(code.len() >= 43 && link["expires_at"].is_string(), "{link}");
    let browser = Browser::sign_in(api, &json!({"code": code})).await;
    assert_eq!(browser.session().await, json!({"accounts": true, "signed_in": true, "name": "local"}));
    assert!(browser.socket(Some(api.base_url())).await);
    let refused = post(api, "/api/session", &json!({"code": code})).await.expect_problem(401, "unauthorized");
    assert!(refused["detail"].as_str().unwrap().contains("greenroom auth link"), "{refused}");
    let forged = api.request(Method::POST, "/api/session").header("origin", "http://localhost:1");
    response_to(forged.json(&json!({"code": code}))).await.expect_problem(403, "forbidden_origin");

    // The session belongs to the operator and to no token, and the key itself starts one too.
    let by_key = Browser::sign_in(api, &json!({"token": operator.token().unwrap()})).await;
    assert_eq!(by_key.session().await["name"], "local");
    response_to(by_key.on_page(Method::POST, "/api/session/links").json(&json!({})))
        .await
        .expect_problem(403, "forbidden");
    let out = response_to(browser.on_page(Method::DELETE, "/api/session")).await;
    assert_eq!(out.status, 204);
    response_to(browser.ask(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    assert_eq!(by_key.session().await["signed_in"], true, "sessions must be independent");
}

async fn c2_the_printed_link_is_in_no_log_and_a_new_key_ends_sessions(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LOG__LEVEL", "trace");
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    let browser = Browser::sign_in(&api, &json!({"token": server.local_key()})).await;
    let old_key = server.local_key().to_owned();
    assert_eq!(browser.session().await["signed_in"], true);
    let link = post(&operator, "/api/session/links", &json!({})).await.expect_status(201);
    let code = link["url"].as_str().unwrap().split_once("#code=").unwrap().1.to_owned();
    server.terminate(STOP).await.unwrap();
    let (server, _) = binary.serve().await;
    assert_eq!(browser.session().await["signed_in"], true, "a restart changes nothing");
    post(&api, "/api/session", &json!({"code": code})).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();

    std::fs::remove_file(binary.launch.data_dir.join("local.key")).unwrap();
    let (server, _) = binary.serve().await;
    assert_ne!(server.local_key(), old_key);
    assert_eq!(browser.session().await["signed_in"], false);
    get(&operator, "/api/rooms").await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
    let log = binary.log();
    assert!(!log.contains("#code=") && !log.contains(&old_key) && !log.contains(&code));
}

struct Browser {
    api: TestClient,
    cookie: String,
}

impl Browser {
    async fn sign_in(api: &TestClient, proof: &Value) -> Self {
        let request = api.request(Method::POST, "/api/session").header("origin", api.base_url());
        let signed_in = response_to(request.json(proof)).await;
        assert_eq!(signed_in.status, 204, "{signed_in:?}");
        let set = signed_in.header("set-cookie");
        for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
            assert!(set.contains(word), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        let mut secrets = proof.as_object().unwrap().values();
        assert!(secrets.all(|secret| !cookie.contains(secret.as_str().unwrap())), "the cookie has its own secret");
        Self { api: api.clone(), cookie }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.api.request(method, path).header("cookie", &self.cookie)
    }

    fn on_page(&self, method: Method, path: &str) -> RequestBuilder {
        self.ask(method, path).header("origin", self.api.base_url())
    }

    async fn session(&self) -> Value {
        response_to(self.ask(Method::GET, "/api/session")).await.expect_status(200)
    }

    async fn socket(&self, origin: Option<&str>) -> bool {
        let mut request =
            format!("{}/api/ws", self.api.base_url().replacen("http", "ws", 1)).into_client_request().unwrap();
        request.headers_mut().insert("cookie", self.cookie.parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        within("an answer", tokio_tungstenite::connect_async(request)).await.is_ok()
    }
}

async fn with_token(api: &TestClient, token: &str) -> Browser {
    Browser::sign_in(api, &json!({"token": token})).await
}

async fn token(binary: &Binary, user: &str) -> String {
    binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned()
}

async fn cookie_has_the_access_of_its_token(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (ada, bob) = (token(&binary, "ada").await, token(&binary, "bob").await);
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    assert_eq!(
        get(&api, "/api/session").await.expect_status(200),
        json!({"accounts": true, "signed_in": false, "name": null})
    );
    let (hers, his) = (with_token(&api, &ada).await, with_token(&api, &bob).await);
    assert_eq!(hers.session().await, json!({"accounts": true, "signed_in": true, "name": "ada"}));
    let made =
        response_to(hers.on_page(Method::POST, "/api/rooms").json(&json!({"name": "Hers"}))).await.expect_status(201);
    let path = format!("/api/rooms/{}", made["id"].as_str().unwrap());
    response_to(hers.ask(Method::GET, &path)).await.expect_status(200);
    response_to(his.ask(Method::GET, &path)).await.expect_problem(404, "not_found");
    assert!(hers.socket(Some(api.base_url())).await);
    // The cookie value is not a token, and the token is not a cookie.
    let secret = hers.cookie.split_once('=').unwrap().1;
    get(&api.clone().with_token(secret), "/api/rooms").await.expect_problem(401, "unauthorized");
    let swapped = api.request(Method::GET, "/api/rooms").header("cookie", format!("greenroom_session={ada}"));
    response_to(swapped).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
    assert!(!binary.log().contains(secret), "the secret must not be logged");
}

async fn cookie_works_for_own_pages_only(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let token = token(&binary, "local").await;
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    let browser = with_token(&api, &token).await;
    let new = json!({"name": "x"});
    let write = |request: RequestBuilder| response_to(request.json(&new));
    write(browser.ask(Method::POST, "/api/rooms")).await.expect_problem(403, "forbidden_origin");
    for other in ["http://localhost:1", "http://127.0.0.1:1", "https://evil.example", "null"] {
        let request = browser.ask(Method::POST, "/api/rooms").header("origin", other);
        write(request).await.expect_problem(403, "forbidden_origin");
        assert!(!browser.socket(Some(other)).await, "{other}");
        let forged = api.request(Method::POST, "/api/session").header("origin", other).json(&json!({"token": token}));
        response_to(forged).await.expect_problem(403, "forbidden_origin");
        let out = browser.ask(Method::DELETE, "/api/session").header("origin", other);
        response_to(out).await.expect_problem(403, "forbidden_origin");
    }
    assert!(!browser.socket(None).await, "a request without an origin must be rejected");
    for site in ["cross-site", "same-site"] {
        let read = browser.ask(Method::GET, "/api/rooms").header("sec-fetch-site", site);
        response_to(read).await.expect_problem(403, "forbidden_origin");
    }
    response_to(browser.ask(Method::GET, "/api/rooms").header("sec-fetch-site", "same-origin"))
        .await
        .expect_status(200);
    // A request with a token does not need an origin.
    write(browser.ask(Method::POST, "/api/rooms").bearer_auth(&token)).await.expect_status(201);
    assert_eq!(browser.session().await["signed_in"], true, "the session must still be valid");
    server.terminate(STOP).await.unwrap();
}

async fn browser_session_ends(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_FEED__HEARTBEAT_SECONDS", "1");
    let token = token(&binary, "local").await;
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    let mine = api.clone().with_token(&token);
    let room = room(&mine).await;
    let (left, revoked) = (with_token(&api, &token).await, with_token(&api, &token).await);
    let events = format!("/api/rooms/{room}/events");
    let stream = left.ask(Method::GET, &events).header("accept", "text/event-stream").send().await.unwrap();
    let out = response_to(left.on_page(Method::DELETE, "/api/session")).await;
    assert_eq!((out.status, out.header("set-cookie").contains("Max-Age=0")), (204, true));
    response_to(left.ask(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    let told = within("the stream to end", stream.text()).await.unwrap();
    assert!(told.contains("event: problem") && told.contains("unauthorized"), "{told}");
    assert_eq!(revoked.session().await["signed_in"], true, "sessions must be independent");

    let tokens = get(&mine, "/api/tokens").await.expect_status(200);
    let id = tokens["tokens"][0]["id"].as_str().unwrap();
    let gone = response_to(revoked.on_page(Method::DELETE, &format!("/api/tokens/{id}"))).await;
    assert_eq!(gone.status, 204);
    assert_eq!(revoked.session().await, json!({"accounts": true, "signed_in": false, "name": null}));
    response_to(revoked.ask(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

async fn signed_in(operator: &TestClient) -> Browser {
    with_token(&operator.anonymous(), operator.token().unwrap()).await
}

async fn m4_a_link_does_not_run_an_agent(operator: &TestClient) {
    let browser = signed_in(operator).await;
    let path = format!("/api/execute/agent/{}?message=!count%202", operator.scripted_agent().await.unwrap());
    for site in [None, Some("same-origin"), Some("none")] {
        let click = browser.ask(Method::GET, &path);
        let click = site.into_iter().fold(click, |click, site| click.header("sec-fetch-site", site));
        let refused = response_to(click).await.expect_problem(403, "forbidden");
        assert!(refused["detail"].as_str().unwrap().contains("/api/tickets"), "{refused}");
    }
    assert_eq!(response_to(operator.request(Method::HEAD, &path)).await.status, 405);
    assert_eq!(get(operator, "/api/rooms").await.expect_status(200)["rooms"], json!([]), "nothing has run");

    let ticket = response_to(browser.on_page(Method::POST, "/api/tickets")).await.expect_status(201);
    let with_ticket = format!("{path}&ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(response_to(operator.anonymous().request(Method::HEAD, &with_ticket)).await.status, 405);
    let from_elsewhere = browser.ask(Method::GET, &with_ticket).header("origin", "https://evil.example");
    response_to(from_elsewhere).await.expect_problem(403, "forbidden_origin");
    let ran = response_to(browser.ask(Method::GET, &with_ticket).header("sec-fetch-site", "same-origin")).await;
    assert!(ran.status == 200 && ran.text.ends_with("data: done\n\n"), "{ran:?}");
    let again = response_to(browser.ask(Method::GET, &with_ticket)).await;
    assert_eq!(again.status, 204, "the client has the whole answer, and nothing runs again");
    let other = with_ticket.replace("count%202", "count%203");
    response_to(browser.ask(Method::GET, &other)).await.expect_problem(401, "unauthorized");
    assert_eq!(get(operator, "/api/runs").await.expect_status(200)["runs"].as_array().unwrap().len(), 1);

    // The ticket is enough by itself, as long as what gave it is valid.
    let ticket = response_to(browser.on_page(Method::POST, "/api/tickets")).await.expect_status(201);
    let alone = format!("{path}&ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(get(&operator.anonymous(), &alone).await.status, 200);
    let ticket = response_to(browser.on_page(Method::POST, "/api/tickets")).await.expect_status(201);
    assert_eq!(response_to(browser.on_page(Method::DELETE, "/api/session")).await.status, 204);
    let late = format!("{path}&ticket={}", ticket["ticket"].as_str().unwrap());
    get(&operator.anonymous(), &late).await.expect_problem(401, "unauthorized");
    assert_eq!(get(operator, &path).await.status, 200, "a token needs no ticket");
}

async fn h1_a_body_without_a_preflight_needs_more_than_a_cookie(operator: &TestClient) {
    let browser = signed_in(operator).await;
    for target in ["/api/uploads?name=a.txt", "/api/skills/import"] {
        for kind in [None, Some("text/plain"), Some("multipart/form-data; boundary=x"), Some("Text/Plain; charset=x")] {
            let send = |request: RequestBuilder| {
                let request = kind.into_iter().fold(request, |request, kind| request.header("content-type", kind));
                response_to(request.body("content"))
            };
            send(browser.on_page(Method::POST, target)).await.expect_problem(415, "unsupported_media_type");
            let asked_first = send(browser.on_page(Method::POST, target).header("x-requested-with", "x")).await;
            let by_program = send(operator.request(Method::POST, target)).await;
            // The body is a file, but no form.
            let is_form = kind.is_some_and(|kind| kind.starts_with("multipart/"));
            let is_file = target.starts_with("/api/uploads") && !is_form;
            for answer in [asked_first, by_program] {
                assert_eq!(answer.status == 201, is_file, "{target} {kind:?}: {answer:?}");
                assert!(!answer.text.contains("Idempotency-Key"), "{answer:?}");
            }
        }
    }
}

async fn l4_a_page_of_the_other_scheme_is_another_page(operator: &TestClient) {
    let (browser, own) = (signed_in(operator).await, operator.base_url());
    let other = own.replacen("http", "https", 1);
    assert!(browser.socket(Some(own)).await && !browser.socket(Some(&other)).await);
    let write = |origin: &str| {
        response_to(browser.ask(Method::POST, "/api/rooms").header("origin", origin).json(&json!({"name": "x"})))
    };
    assert_eq!(write(own).await.status, 201);
    assert_eq!(write(&other).await.status, 401, "the cookie of http does not count there");
    let sign_in = operator.anonymous().request(Method::POST, "/api/session").header("origin", &other);
    let sign_in = sign_in.json(&json!({"token": operator.token().unwrap()}));
    response_to(sign_in).await.expect_problem(403, "forbidden_origin");
    let behind_tls = operator.anonymous().request(Method::POST, "/api/session").header("origin", &other);
    let behind_tls = behind_tls.header("x-forwarded-proto", "https").json(&json!({"token": operator.token().unwrap()}));
    let set = response_to(behind_tls).await.header("set-cookie").to_owned();
    assert!(set.starts_with("__Host-greenroom_session=") && set.ends_with("; Secure"), "{set}");
}
