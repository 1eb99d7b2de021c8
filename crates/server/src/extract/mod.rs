//! Extractors that turn a request into values. Handlers never see a rejection: an invalid request becomes a
//! [`Problem`](crate::error::Problem) that says what to do about it.

pub mod body;
pub mod field_error;
pub mod idempotency;
pub mod json;
pub mod multipart;
pub mod params;
pub mod query;
pub mod value_reader;

pub use body::{BodyBytes, JsonBody, RawBody};
pub use idempotency::{Fingerprint, FingerprintBuilder, IdempotencyKey};
pub use params::{Id, QueryParams};
