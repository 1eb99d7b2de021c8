//! Tool calls as XML in a model's text, for models that have no other way: read while they stream, and written.
//!
//! ```text
//! <function_calls>
//! <invoke name="mcp__files__read">
//! <parameter name="path">notes.txt</parameter>
//! </invoke>
//! </function_calls>
//! ```
//!
//! Text that may be the beginning of a tag is held back until it is clear what it is, so that nobody ever sees half a tag.
//! The words `<function_calls>` alone are text: calls are what has an `<invoke` right after them.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{Bit, Reader};
pub use writer::{flattened, instructions, transcript};

/// Where a model is made to stop: what would follow are results that it makes up.
pub const STOP: &[&str] = &[CLOSE];

const OPEN: &str = "<function_calls>";
const CLOSE: &str = "</function_calls>";
const INVOKE: &str = "<invoke";
const INVOKE_CLOSE: &str = "</invoke>";
const PARAMETER: &str = "<parameter";
const PARAMETER_CLOSE: &str = "</parameter>";
