//! What Claude Code really said, and a double that plays it.

mod double;
mod exchanges;
mod faults;
mod flags;
mod lines;
mod recorded;
mod resident;
