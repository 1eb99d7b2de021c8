//! What the web app relies on: the schema of events, from which its types are generated, and the fold of events into
//! messages, which it repeats in TypeScript. `sample_journal` has an event of every type for both.

mod event_schema;
mod fold;
mod fold_fixture;
mod sample_journal;
mod sample_runs;
mod schema_check;
