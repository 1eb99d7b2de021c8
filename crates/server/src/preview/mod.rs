//! Previews: what a command serves on a port inside of a project's sandbox, in a browser.
//!
//! A preview has a host name of its own, `LABEL.preview.localhost`, so that its pages are another origin than the API and than
//! every other preview: the browser sends them no cookie of the server, and they cannot read what it answers. The label is a secret
//! that an authenticated request gets; every request is on behalf of that user, and is refused when they lose access.
//!
//! [`dispatch`] separates these requests from all others before anything else looks at them: a request to such a name never
//! reaches the API. `previews` has the open ones, `forward` passes requests on.

mod forward;
mod previews;

pub use previews::{Preview, Previews};

use crate::{App, auth::origin, error::Code};
use axum::{
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

/// The middleware around the router of clients.
pub async fn dispatch(State(app): State<App>, request: Request, next: Next) -> Response {
    let asked = origin::host(&request);
    let label = asked.as_ref().and_then(|host| label_of(host.host(), &app.config.preview_domain)).map(str::to_owned);
    match label {
        None => next.run(request).await,
        Some(label) => serve(&app, &label, request).await,
    }
}

/// Whether a host name is one of previews, or their domain itself.
pub fn covers(domain: &str, host: &str) -> bool {
    host.eq_ignore_ascii_case(domain) || label_of(host, domain).is_some()
}

/// The label of a preview's host name. Every name beneath the domain is one of a preview, also one that does not exist.
fn label_of<'a>(host: &'a str, domain: &str) -> Option<&'a str> {
    let at = host.len().checked_sub(domain.len() + 1)?;
    let (label, rest) = host.split_at_checked(at)?;
    (rest.starts_with('.') && rest[1..].eq_ignore_ascii_case(domain)).then_some(label)
}

async fn serve(app: &App, label: &str, request: Request) -> Response {
    let Some(preview) = app.previews.find(label) else {
        return page(StatusCode::NOT_FOUND, "This preview has ended. Open it again from the project.");
    };
    if preview.needs_check() {
        match check_access(app, &preview).await {
            Ok(()) => preview.set_checked(),
            Err(Code::Unauthorized | Code::Forbidden | Code::NotFound) => {
                app.previews.close(label);
                return page(StatusCode::NOT_FOUND, "This preview has ended. Open it again from the project.");
            }
            Err(_) => {
                return page(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "The server cannot do this right now. Reload in a moment.",
                );
            }
        }
    }
    forward::forward(app, &preview, request)
        .await
        .unwrap_or_else(|failure| page(failure.status(), &failure.to_string()))
}

async fn check_access(app: &App, preview: &Preview) -> Result<(), Code> {
    app.authenticator.recheck(&preview.actor).await.map_err(|problem| problem.code())?;
    let found = app.engine.project(&preview.actor, preview.project).await;
    found.map(drop).map_err(|error| crate::error::Problem::from(error).code())
}

/// A page of ours, without anything that could be executed.
fn page(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, format!("{text}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::label_of;

    #[test]
    fn only_names_beneath_the_domain_are_previews() {
        assert_eq!(label_of("abc.preview.localhost", "preview.localhost"), Some("abc"));
        assert_eq!(label_of("ABC.Preview.LOCALHOST", "preview.localhost"), Some("ABC"));
        assert_eq!(label_of("a.b.preview.localhost", "preview.localhost"), Some("a.b"));
        assert_eq!(label_of(".preview.localhost", "preview.localhost"), Some(""));
        for other in ["preview.localhost", "xpreview.localhost", "localhost", "", "abc.preview.localhost.evil.net", "é"]
        {
            assert_eq!(label_of(other, "preview.localhost"), None, "{other}");
        }
    }
}
