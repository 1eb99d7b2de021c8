//! Browsers: a token is shown once, a cookie takes its place, and it works for pages of this server only.

use super::{
    binary::Binary,
    scene::{answer, get, post, room, within},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::Api, database::TestDatabase};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

doors! {
    server: without_accounts_everybody_here_is_signed_in;
    database: a_cookie_opens_what_its_token_opens, a_cookie_is_for_our_pages_only, a_visit_ends;
}

const STOP: Duration = Duration::from_secs(30);

async fn without_accounts_everybody_here_is_signed_in(api: &Api) {
    let session = get(api, "/api/session").await.is(200);
    assert_eq!(session, json!({"accounts": false, "signed_in": true, "name": "local"}));
    post(api, "/api/session", &json!({"token": "grm_wrong"})).await.is_refused(401, "unauthorized");
    post(api, "/api/session", &json!({"token": 7})).await.is_refused(400, "invalid_request");
    assert_eq!(answer(api.request(Method::DELETE, "/api/session")).await.status, 204, "nobody was");
}

struct Browser {
    api: Api,
    cookie: String,
}

impl Browser {
    async fn sign_in(api: &Api, token: &str) -> Self {
        let request = api.request(Method::POST, "/api/session").header("origin", api.base());
        let signed_in = answer(request.json(&json!({"token": token}))).await;
        assert_eq!(signed_in.status, 204, "{signed_in:?}");
        let set = signed_in.header("set-cookie");
        for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
            assert!(set.contains(word), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        assert!(!cookie.contains(token), "the token itself stays out of it");
        Self { api: api.clone(), cookie }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.api.request(method, path).header("cookie", &self.cookie)
    }

    fn on_page(&self, method: Method, path: &str) -> RequestBuilder {
        self.ask(method, path).header("origin", self.api.base())
    }

    async fn session(&self) -> Value {
        answer(self.ask(Method::GET, "/api/session")).await.is(200)
    }

    async fn socket(&self, origin: Option<&str>) -> bool {
        let mut request =
            format!("{}/api/ws", self.api.base().replacen("http", "ws", 1)).into_client_request().unwrap();
        request.headers_mut().insert("cookie", self.cookie.parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        within("an answer", tokio_tungstenite::connect_async(request)).await.is_ok()
    }
}

async fn token(binary: &Binary, user: &str) -> String {
    binary.beside(&["token", "create", "--user", user]).await.out.trim().to_owned()
}

async fn a_cookie_opens_what_its_token_opens(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (ada, bob) = (token(&binary, "ada").await, token(&binary, "bob").await);
    let (server, api) = binary.serve().await;
    assert_eq!(get(&api, "/api/session").await.is(200), json!({"accounts": true, "signed_in": false, "name": null}));
    let (hers, his) = (Browser::sign_in(&api, &ada).await, Browser::sign_in(&api, &bob).await);
    assert_eq!(hers.session().await, json!({"accounts": true, "signed_in": true, "name": "ada"}));
    let made = answer(hers.on_page(Method::POST, "/api/rooms").json(&json!({"name": "Hers"}))).await.is(201);
    let path = format!("/api/rooms/{}", made["id"].as_str().unwrap());
    answer(hers.ask(Method::GET, &path)).await.is(200);
    answer(his.ask(Method::GET, &path)).await.is_refused(404, "not_found");
    assert!(hers.socket(Some(api.base())).await);
    // The cookie is none of the things it stands for.
    let secret = hers.cookie.split_once('=').unwrap().1;
    get(&api.clone().with_token(secret), "/api/rooms").await.is_refused(401, "unauthorized");
    let swapped = api.request(Method::GET, "/api/rooms").header("cookie", format!("greenroom_session={ada}"));
    answer(swapped).await.is_refused(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
    assert!(!binary.log().contains(secret), "it is in no log");
}

async fn a_cookie_is_for_our_pages_only(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let token = token(&binary, "local").await;
    let (server, api) = binary.serve().await;
    let browser = Browser::sign_in(&api, &token).await;
    let new = json!({"name": "x"});
    let write = |request: RequestBuilder| answer(request.json(&new));
    write(browser.ask(Method::POST, "/api/rooms")).await.is_refused(403, "forbidden_origin");
    for other in ["http://localhost:1", "http://127.0.0.1:1", "https://evil.example", "null"] {
        let request = browser.ask(Method::POST, "/api/rooms").header("origin", other);
        write(request).await.is_refused(403, "forbidden_origin");
        assert!(!browser.socket(Some(other)).await, "{other}");
        let forged = api.request(Method::POST, "/api/session").header("origin", other).json(&json!({"token": token}));
        answer(forged).await.is_refused(403, "forbidden_origin");
        let out = browser.ask(Method::DELETE, "/api/session").header("origin", other);
        answer(out).await.is_refused(403, "forbidden_origin");
    }
    assert!(!browser.socket(None).await, "a browser says where it comes from");
    for site in ["cross-site", "same-site"] {
        let read = browser.ask(Method::GET, "/api/rooms").header("sec-fetch-site", site);
        answer(read).await.is_refused(403, "forbidden_origin");
    }
    answer(browser.ask(Method::GET, "/api/rooms").header("sec-fetch-site", "same-origin")).await.is(200);
    // A token beside the cookie is a program's: it needs no page.
    write(browser.ask(Method::POST, "/api/rooms").bearer_auth(&token)).await.is(201);
    assert_eq!(browser.session().await["signed_in"], true, "nobody was signed out");
    server.terminate(STOP).await.unwrap();
}

async fn a_visit_ends(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_FEED__HEARTBEAT_SECONDS", "1");
    let token = token(&binary, "local").await;
    let (server, api) = binary.serve().await;
    let mine = api.clone().with_token(&token);
    let room = room(&mine).await;
    let (left, revoked) = (Browser::sign_in(&api, &token).await, Browser::sign_in(&api, &token).await);
    let events = format!("/api/rooms/{room}/events");
    let stream = left.ask(Method::GET, &events).header("accept", "text/event-stream").send().await.unwrap();
    let out = answer(left.on_page(Method::DELETE, "/api/session")).await;
    assert_eq!((out.status, out.header("set-cookie").contains("Max-Age=0")), (204, true));
    answer(left.ask(Method::GET, "/api/rooms")).await.is_refused(401, "unauthorized");
    let told = within("the stream to end", stream.text()).await.unwrap();
    assert!(told.contains("event: error") && told.contains("unauthorized"), "{told}");
    assert_eq!(revoked.session().await["signed_in"], true, "each browser on its own");

    let tokens = get(&mine, "/api/tokens").await.is(200);
    let id = tokens["tokens"][0]["id"].as_str().unwrap();
    let gone = answer(revoked.on_page(Method::DELETE, &format!("/api/tokens/{id}"))).await;
    assert_eq!(gone.status, 204);
    assert_eq!(revoked.session().await, json!({"accounts": true, "signed_in": false, "name": null}));
    answer(revoked.ask(Method::GET, "/api/rooms")).await.is_refused(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}
