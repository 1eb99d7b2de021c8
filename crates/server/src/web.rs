//! The pages: what a browser is shown. All of it is in the binary; nothing comes from elsewhere, and the policy that is
//! sent along makes a browser hold us to that.
//!
//! The app is what `web/` was built into when this was compiled; where it was not, a plain page takes its place.

use crate::{
    App,
    doors::{Doors, Policy},
    error::{Code, Problem},
};
use axum::{
    extract::Path,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};

const PLAIN: &str = include_str!("../assets/index.html");
const DOCS: &str = include_str!("../assets/docs.html");

/// Files of the plain pages, which keep their names from version to version.
const ASSETS: &[(&str, &str)] = &[
    ("style.css", include_str!("../assets/style.css")),
    ("index.js", include_str!("../assets/index.js")),
    ("docs.js", include_str!("../assets/docs.js")),
    ("example.js", include_str!("../assets/example.js")),
];

/// Files of the app by path, `assets/…` named after their content; `.gz` beside what is worth it. Empty without an app.
const WEB_APP: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web_app.rs"));

/// Where the app shows something of its own: the app reads the address itself.
const APP_PATHS: &[&str] = &[
    "/",
    "/rooms/{id}",
    "/agents",
    "/agents/{id}",
    "/skills",
    "/skills/{name}",
    "/mcp-servers",
    "/mcp-servers/{name}",
    "/runs",
    "/runs/{id}",
    "/usage",
    "/settings",
];

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                              img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
                              form-action 'none'; frame-ancestors 'none'";
const ASK_AGAIN: &str = "no-cache";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

pub fn open(doors: Doors) -> Doors {
    let doors = doors.page(Policy::Public, "/docs", page(DOCS)).page(Policy::Public, "/assets/{name}", get(asset));
    let paths = if WEB_APP.is_empty() { &APP_PATHS[..1] } else { APP_PATHS };
    let doors = paths.iter().fold(doors, |doors, path| doors.page(Policy::Public, path, get(app)));
    // What a browser asks for beside the page, such as its icon.
    let beside = WEB_APP.iter().map(|(path, _)| *path).filter(|path| is_beside_the_page(path));
    beside.fold(doors, |doors, path| {
        let serve = move |headers: HeaderMap| async move { built(path, &headers, ASK_AGAIN) };
        doors.page(Policy::Public, &format!("/{path}"), get(serve))
    })
}

fn is_beside_the_page(path: &str) -> bool {
    !path.contains('/') && path != "index.html" && !path.ends_with(".gz")
}

fn page(html: &'static str) -> MethodRouter<App> {
    get(move || async move { plain("index.html", html) })
}

async fn app(headers: HeaderMap) -> Result<Response, Problem> {
    if WEB_APP.is_empty() { Ok(plain("index.html", PLAIN)) } else { built("index.html", &headers, ASK_AGAIN) }
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match ASSETS.iter().find(|(known, _)| *known == name) {
        Some((_, content)) => Ok(plain(&name, content)),
        None => built(&format!("assets/{name}"), &headers, FOR_EVER),
    }
}

fn plain(name: &str, content: &'static str) -> Response {
    (common(name, ASK_AGAIN), content).into_response()
}

/// A file of the app, compressed where the browser takes that.
fn built(path: &str, headers: &HeaderMap, caching: &'static str) -> Result<Response, Problem> {
    let find = |path: &str| WEB_APP.iter().find(|(known, _)| *known == path).map(|(_, content)| *content);
    let not_found = || Problem::new(Code::NotFound, "There is no such file.");
    let common = common(path, caching);
    let takes_gzip = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("gzip"));
    let wanted = headers.get_all(header::ACCEPT_ENCODING).iter().any(takes_gzip);
    match find(&format!("{path}.gz")).filter(|_| wanted && !path.ends_with(".gz")) {
        Some(content) => {
            let encoded = [(header::CONTENT_ENCODING, "gzip"), (header::VARY, "accept-encoding")];
            Ok((common, encoded, content).into_response())
        }
        None => find(path).map(|content| (common, content).into_response()).ok_or_else(not_found),
    }
}

fn common(name: &str, caching: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static(kind(name))),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
    ])
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("webmanifest" | "json") => "application/json",
        _ => "application/octet-stream",
    }
}
