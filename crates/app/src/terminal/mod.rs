//! What may reach a terminal. Text from models, tools, people and servers is data: it is shown, and never moves the
//! cursor, changes a colour or rewrites what stands above it (invariant 16).
//!
//! `sanitise` is the one way for such text; `screen` is where an answer is printed, `spinner` says that something is
//! awaited, `table` sets lists. None of them knows HTTP or events.

pub mod sanitise;
pub mod screen;
pub mod spinner;
pub mod table;
