//! Extractors for the request target: ids in the path, parameters in the query.

use super::{field_error::FieldError, query};
use crate::{App, error::Problem};
use axum::{
    extract::{FromRequestParts, Path},
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
        query::parse(parts.uri.query().unwrap_or_default()).map(Self).map_err(FieldError::into_query_problem)
    }
}
