//! The pages for browsers. All files are embedded in the binary, and the content security policy keeps browsers from
//! loading anything else.
//!
//! The web app is the build of `web/` that existed at compile time. Without one, a plain page is served instead.

use crate::{
    App,
    error::{Code, Problem},
    routing::{Policy, RouterBuilder},
};
use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};

const PLAIN_PAGE: &str = include_str!("../assets/index.html");
const DOCS: &str = include_str!("../assets/docs.html");

/// Files of the plain pages. Their names do not change between versions.
const ASSETS: &[(&str, &str)] = &[
    ("style.css", include_str!("../assets/style.css")),
    ("index.js", include_str!("../assets/index.js")),
    ("docs.js", include_str!("../assets/docs.js")),
    ("example.js", include_str!("../assets/example.js")),
];

/// Files of the web app by path; names under `assets/` contain a content hash. Some files also have a `.gz` variant.
/// Empty if the web app was not built.
const WEB_APP: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web_app.rs"));

/// Paths that the web app routes itself. The plain page serves the first two.
const APP_PATHS: &[&str] = &[
    "/",
    "/sign-in",
    "/rooms/{id}",
    "/agents",
    "/agents/{id}",
    "/skills",
    "/skills/{name}",
    "/mcp-servers",
    "/mcp-servers/{name}",
    "/projects",
    "/projects/{id}",
    "/search",
    "/runs",
    "/runs/{id}",
    "/usage",
    "/approvals",
    "/settings",
    "/settings/providers",
    "/settings/security-log",
];

/// The web app's fonts for the plain pages: a style sheet, because their names contain a hash.
const FONTS: &str = "fonts.css";
const FONT_FACES: [(&str, &str); 2] = [
    ("Atkinson Hyperlegible Next Variable", "assets/atkinson-hyperlegible-next-latin-wght-normal"),
    ("Atkinson Hyperlegible Mono Variable", "assets/atkinson-hyperlegible-mono-latin-wght-normal"),
];

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                              img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; \
                              base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const REVALIDATE: &str = "no-cache";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    let builder =
        builder.add_page(Policy::Public, "/docs", page(DOCS)).add_page(Policy::Public, "/assets/{name}", get(asset));
    let paths = if WEB_APP.is_empty() { &APP_PATHS[..2] } else { APP_PATHS };
    let builder = paths.iter().fold(builder, |builder, path| builder.add_page(Policy::Public, path, get(web_app)));
    // Browsers ask for it on pages that name no icon, such as a file that was opened.
    let builder =
        if WEB_APP.is_empty() { builder } else { builder.add_page(Policy::Public, "/favicon.ico", get(icon)) };
    // Files at the top level that browsers request themselves, such as the icon.
    let root_files = WEB_APP.iter().map(|(path, _)| *path).filter(|path| is_root_file(path));
    root_files.fold(builder, |builder, path| {
        let serve = move |headers: HeaderMap| async move { built(path, &headers, REVALIDATE) };
        builder.add_page(Policy::Public, &format!("/{path}"), get(serve))
    })
}

fn is_root_file(path: &str) -> bool {
    !path.contains('/') && path != "index.html" && !path.ends_with(".gz")
}

/// Returns the web app for an address that it does not know either, if a browser wants to show it as a page.
pub fn unknown_page(app: &App, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    let is_endpoint = ["/api", "/mcp", "/sse", "/assets"].iter().any(|prefix| uri.path().starts_with(prefix));
    let wants_page = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok())?.contains("text/html");
    if is_endpoint || !wants_page {
        return None;
    }
    let page = index(app, headers).ok()?;
    Some((StatusCode::NOT_FOUND, page).into_response())
}

fn page(html: &'static str) -> MethodRouter<App> {
    get(move || async move { plain("index.html", html) })
}

async fn web_app(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    index(&app, &headers)
}

fn index(app: &App, headers: &HeaderMap) -> Result<Response, Problem> {
    if WEB_APP.is_empty() {
        return Ok(plain("index.html", PLAIN_PAGE));
    }
    let mut page = built("index.html", headers, REVALIDATE)?;
    // Previews of projects are other origins, and the only ones that the web app shows in a frame.
    let policy = format!("{CONTENT_POLICY}; frame-src *.{}:*", app.config.preview_domain);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(page)
}

async fn icon(headers: HeaderMap) -> Result<Response, Problem> {
    built("favicon.svg", &headers, REVALIDATE)
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match ASSETS.iter().find(|(known, _)| *known == name) {
        Some((_, content)) => Ok(plain(&name, content)),
        None if name == FONTS => Ok((common(FONTS, REVALIDATE), font_faces()).into_response()),
        None => built(&format!("assets/{name}"), &headers, IMMUTABLE),
    }
}

/// Empty without the web app: the system's fonts are used then.
fn font_faces() -> String {
    let face = |(family, start): &(&str, &str)| {
        let is_font = |path: &&str| path.starts_with(start) && path.ends_with(".woff2");
        let path = WEB_APP.iter().map(|(path, _)| *path).find(is_font)?;
        Some(format!(
            "@font-face {{ font-family: '{family}'; font-display: swap; font-weight: 200 800; src: url('/{path}') format('woff2'); }}\n"
        ))
    };
    FONT_FACES.iter().filter_map(face).collect()
}

fn plain(name: &str, content: &'static str) -> Response {
    (common(name, REVALIDATE), content).into_response()
}

/// A file of the web app, gzipped if the browser accepts it.
fn built(path: &str, headers: &HeaderMap, caching: &'static str) -> Result<Response, Problem> {
    let find = |path: &str| WEB_APP.iter().find(|(known, _)| *known == path).map(|(_, content)| *content);
    let not_found = || Problem::new(Code::NotFound, "This file does not exist.");
    let common = common(path, caching);
    let has_gzip = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("gzip"));
    let accepts_gzip = headers.get_all(header::ACCEPT_ENCODING).iter().any(has_gzip);
    match find(&format!("{path}.gz")).filter(|_| accepts_gzip && !path.ends_with(".gz")) {
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
        Some("webmanifest") => "application/manifest+json",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::APP_PATHS;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_of_the_web_app_is_served_under_its_address() {
        let router = include_str!("../../../web/src/app/router.tsx");
        let pages: BTreeSet<&str> =
            router.split("path: '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
        // `{…}` stands for any segment, as `$…` and the word `new` do there.
        let serves = |page: &&str| {
            APP_PATHS.iter().any(|path| {
                let (known, asked): (Vec<_>, Vec<_>) = (path.split('/').collect(), page.split('/').collect());
                known.len() == asked.len()
                    && known.iter().zip(&asked).all(|(known, asked)| known == asked || known.starts_with('{'))
            })
        };
        let missing: Vec<&str> = pages.iter().copied().filter(|page| !serves(page)).collect();
        assert!(pages.len() > 15, "the pages are not found in the router");
        assert_eq!(missing, [""; 0], "add them to APP_PATHS");
    }
}
