//! Offline and deterministic: the demo, the test double and the load generator.
