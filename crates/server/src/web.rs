//! The pages: what a browser is shown. All of it is in the binary; nothing comes from elsewhere, and the policy that is
//! sent along makes a browser hold us to that.

use crate::{
    App,
    doors::{Doors, Policy},
    error::{Code, Problem},
};
use axum::{
    extract::Path,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};

const INDEX: &str = include_str!("../assets/index.html");
const DOCS: &str = include_str!("../assets/docs.html");

const ASSETS: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("index.js", "text/javascript; charset=utf-8", include_str!("../assets/index.js")),
    ("docs.js", "text/javascript; charset=utf-8", include_str!("../assets/docs.js")),
    ("example.js", "text/javascript; charset=utf-8", include_str!("../assets/example.js")),
];

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub fn open(doors: Doors) -> Doors {
    doors.page(Policy::Public, "/", page(INDEX)).page(Policy::Public, "/docs", page(DOCS)).page(
        Policy::Public,
        "/assets/{name}",
        get(asset),
    )
}

fn page(html: &'static str) -> MethodRouter<App> {
    get(move || async move { file("text/html; charset=utf-8", html) })
}

async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    found
        .map(|(_, kind, content)| file(kind, content))
        .ok_or_else(|| Problem::new(Code::NotFound, "There is no such file."))
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
    ];
    (headers, content).into_response()
}
