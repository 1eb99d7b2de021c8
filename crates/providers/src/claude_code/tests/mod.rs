//! Recorded output of Claude Code, and turns against a fake process.

mod exchanges;
mod fake;
mod faults;
mod flags;
mod lines;
mod recorded;
mod resident;
mod steering;
