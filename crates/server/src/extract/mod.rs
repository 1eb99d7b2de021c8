//! How a request becomes values. Handlers take what they need from here and never see a rejection: whatever is wrong
//! with the request has become a [`Problem`](crate::error::Problem) that says what to do about it.

pub mod body;
pub mod idempotency;
pub mod json;
pub mod params;

pub use body::{Body, PlainBody, RawBody};
pub use idempotency::{Fingerprint, Fingerprinting, IdempotencyKey};
pub use params::{Id, Params};
