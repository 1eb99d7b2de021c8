//! Extractors for the request target: ids in the path, parameters in the query.

use crate::{App, error::Problem};
use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request,
};
use serde::de::DeserializeOwned;

/// The id in the path, or a tuple of ids. A malformed id gets the same response as an unknown one.
#[derive(Clone, Copy, Debug)]
pub struct Id<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        let found = Path::<T>::from_request_parts(parts, app).await;
        found.map(|Path(id)| Self(id)).map_err(|_| Problem::not_found())
    }
}

/// The query string.
#[derive(Clone, Copy, Debug)]
pub struct QueryParams<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &App) -> Result<Self, Problem> {
        // The decoder would replace invalid bytes with U+FFFD instead of refusing them.
        let query = parts.uri.query().unwrap_or_default();
        if percent_encoding::percent_decode_str(query).decode_utf8().is_err() {
            return Err(Problem::invalid("The query string is not valid UTF-8; percent-encode UTF-8 bytes."));
        }
        Query::try_from_uri(&parts.uri).map(|Query(params)| Self(params)).map_err(|rejection| {
            let text = rejection.body_text();
            let what = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            Problem::invalid(format!("The query string does not fit: {what}."))
        })
    }
}
