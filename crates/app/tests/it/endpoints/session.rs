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
    server: local_clients_are_signed_in_without_accounts;
    database: cookie_has_the_access_of_its_token, cookie_works_for_own_pages_only, browser_session_ends;
}

const STOP: Duration = Duration::from_secs(30);

async fn local_clients_are_signed_in_without_accounts(api: &TestClient) {
    let session = get(api, "/api/session").await.expect_status(200);
    assert_eq!(session, json!({"accounts": false, "signed_in": true, "name": "local"}));
    post(api, "/api/session", &json!({"token": "grm_wrong"})).await.expect_problem(401, "unauthorized");
    post(api, "/api/session", &json!({"token": 7})).await.expect_problem(400, "invalid_request");
    assert_eq!(
        response_to(api.request(Method::DELETE, "/api/session")).await.status,
        204,
        "signing out without a session succeeds"
    );
}

struct Browser {
    api: TestClient,
    cookie: String,
}

impl Browser {
    async fn sign_in(api: &TestClient, token: &str) -> Self {
        let request = api.request(Method::POST, "/api/session").header("origin", api.base_url());
        let signed_in = response_to(request.json(&json!({"token": token}))).await;
        assert_eq!(signed_in.status, 204, "{signed_in:?}");
        let set = signed_in.header("set-cookie");
        for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
            assert!(set.contains(word), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        assert!(!cookie.contains(token), "the cookie must not contain the token");
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

async fn token(binary: &Binary, user: &str) -> String {
    binary.run_command(&["token", "create", "--user", user]).await.stdout.trim().to_owned()
}

async fn cookie_has_the_access_of_its_token(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (ada, bob) = (token(&binary, "ada").await, token(&binary, "bob").await);
    let (server, api) = binary.serve().await;
    assert_eq!(
        get(&api, "/api/session").await.expect_status(200),
        json!({"accounts": true, "signed_in": false, "name": null})
    );
    let (hers, his) = (Browser::sign_in(&api, &ada).await, Browser::sign_in(&api, &bob).await);
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
    let (server, api) = binary.serve().await;
    let browser = Browser::sign_in(&api, &token).await;
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
    let (server, api) = binary.serve().await;
    let mine = api.clone().with_token(&token);
    let room = room(&mine).await;
    let (left, revoked) = (Browser::sign_in(&api, &token).await, Browser::sign_in(&api, &token).await);
    let events = format!("/api/rooms/{room}/events");
    let stream = left.ask(Method::GET, &events).header("accept", "text/event-stream").send().await.unwrap();
    let out = response_to(left.on_page(Method::DELETE, "/api/session")).await;
    assert_eq!((out.status, out.header("set-cookie").contains("Max-Age=0")), (204, true));
    response_to(left.ask(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    let told = within("the stream to end", stream.text()).await.unwrap();
    assert!(told.contains("event: error") && told.contains("unauthorized"), "{told}");
    assert_eq!(revoked.session().await["signed_in"], true, "sessions must be independent");

    let tokens = get(&mine, "/api/tokens").await.expect_status(200);
    let id = tokens["tokens"][0]["id"].as_str().unwrap();
    let gone = response_to(revoked.on_page(Method::DELETE, &format!("/api/tokens/{id}"))).await;
    assert_eq!(gone.status, 204);
    assert_eq!(revoked.session().await, json!({"accounts": true, "signed_in": false, "name": null}));
    response_to(revoked.ask(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}
