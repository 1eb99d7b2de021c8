//! Turns against a program that the test plays itself, on in-memory pipes.

mod approvals;
mod endings;
mod fake;
mod instances;
mod turns;

pub use fake::{place, program};
