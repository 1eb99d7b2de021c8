//! Tests of what all routes share: authentication, bodies, errors, sockets.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking, and so do their helpers")]

mod auth;
mod bodies;
mod cors;
mod origin;
mod roles;
mod routes;
mod sockets;
mod test_app;
mod tls;
