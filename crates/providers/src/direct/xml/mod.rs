//! Tool calls as XML in the text, for models without native tool calls: a streaming reader and a writer.
//!
//! ```text
//! <function_calls>
//! <invoke name="mcp__files__read">
//! <parameter name="path">notes.txt</parameter>
//! </invoke>
//! </function_calls>
//! ```
//!
//! Text that may be the start of a tag is buffered until it is clear what it is, so that users never see half a tag.
//! `<function_calls>` alone is text: it starts a block of calls only if an `<invoke` follows.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{XmlPiece, XmlReader};
pub use writer::{instructions, transcript, with_calls_as_text};

/// Stop sequences: without them a model would make up the results.
pub const STOP_SEQUENCES: &[&str] = &[CLOSE];

const OPEN: &str = "<function_calls>";
const CLOSE: &str = "</function_calls>";
const INVOKE: &str = "<invoke";
const INVOKE_CLOSE: &str = "</invoke>";
const PARAMETER: &str = "<parameter";
const PARAMETER_CLOSE: &str = "</parameter>";
