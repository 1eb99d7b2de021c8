//! Tests of turns against a fake program on in-memory pipes.

mod approvals;
mod endings;
mod fake;
mod instances;
mod turns;

pub use fake::{program, workspace};
