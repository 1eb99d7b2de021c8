//! Terminal output. Text from models, tools, people and servers is data: it is shown, and never moves the cursor,
//! changes a color or rewrites earlier output (invariant 16).
//!
//! All such text passes `sanitize`. `screen` prints an answer, `spinner` shows that the command is waiting, `table`
//! prints lists, `markdown` colors answers. None of them knows HTTP or events.

pub mod markdown;
pub mod sanitize;
pub mod screen;
pub mod spinner;
pub mod table;
