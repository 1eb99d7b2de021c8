//! Building blocks for tests and benchmarks. Dev-only: nothing in the product depends on it.

pub mod certificates;
pub mod client;
pub mod database;
pub mod database_dump;
pub mod models;
pub mod programs;
pub mod server;
