//! `read_attachment`: reads files that people attached, in pieces, for agents without a file system.

use crate::{
    AttachedFile,
    host_tools::{
        HostCall, HostTool, HostToolAgent, HostToolAudience, HostToolDefinition, HostToolFuture, HostToolOutcome,
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
};

pub const READ_ATTACHMENT: &str = "read_attachment";
/// The default and the most bytes of one call.
const PIECE_BYTES: u64 = 16 * 1024;
const MAX_PIECE_BYTES: u64 = 64 * 1024;

#[derive(Debug)]
pub struct ReadAttachment;

impl HostTool for ReadAttachment {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The path that the message names."},
                "offset": {"type": "integer", "minimum": 0, "description": "The first byte; 0 unless given."},
                "length": {"type": "integer", "minimum": 1, "maximum": MAX_PIECE_BYTES,
                           "description": "The number of bytes; 16384 unless given."}
            },
            "required": ["path"],
            "additionalProperties": false
        });
        let description =
            "Reads a part of a file that was attached to a message: text as it is, anything else as base64.";
        HostToolDefinition {
            audience: HostToolAudience::ModelApiAgents,
            is_read_only: true,
            ..HostToolDefinition::new(READ_ATTACHMENT, description, schema)
        }
    }

    fn definition_for(&self, agent: &HostToolAgent) -> Option<HostToolDefinition> {
        (!agent.attachments.is_empty()).then(|| self.definition())
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let files = &call.agent.attachments;
            let Some(file) = call.text("path").and_then(|path| files.iter().find(|file| file.path == path)) else {
                let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
                return HostToolOutcome::error(format!("path: one of {}", paths.join(", ")));
            };
            let number = |name: &str, default| call.arguments.get(name).map_or(Some(default), Value::as_u64);
            let (Some(offset), Some(length)) = (number("offset", 0), number("length", PIECE_BYTES)) else {
                return HostToolOutcome::error("offset and length: whole numbers of bytes");
            };
            let (file, length) = (file.clone(), length.clamp(1, MAX_PIECE_BYTES));
            match tokio::task::spawn_blocking(move || piece(&file, offset, length)).await {
                Ok(Ok(text)) => HostToolOutcome::success(text),
                Ok(Err(error)) => HostToolOutcome::error(format!("the file cannot be read: {error}")),
                Err(error) => HostToolOutcome::error(format!("the file cannot be read: {error}")),
            }
        })
    }
}

/// A line that says which bytes these are, and the bytes. Blocks.
fn piece(file: &AttachedFile, offset: u64, length: u64) -> io::Result<String> {
    let mut opened = File::open(&file.file)?;
    let total = opened.metadata()?.len();
    opened.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    opened.take(length).read_to_end(&mut bytes)?;
    // A character at the end of the piece belongs to the next one.
    let cut = bytes.len().saturating_sub(3);
    let whole = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() >= cut && error.valid_up_to() > 0 => {
            error.valid_up_to()
        }
        _ => bytes.len(),
    };
    bytes.truncate(whole);
    let (form, content) = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => ("text", text),
        Ok(text) => ("base64", STANDARD.encode(text)),
        Err(error) => ("base64", STANDARD.encode(error.as_bytes())),
    };
    let end = offset + whole as u64;
    let rest = if end < total { format!("; continue at offset {end}") } else { "; this is the end".to_owned() };
    Ok(format!("[bytes {offset} to {end} of {total} as {form}{rest}]\n{content}"))
}

#[cfg(test)]
mod tests {
    use super::piece;
    use crate::AttachedFile;

    #[test]
    fn pieces_join_to_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = AttachedFile { name: "a".into(), path: "a".into(), file: folder.path().join("a") };
        let text = "äöü€ and so on ".repeat(20);
        std::fs::write(&file.file, &text).unwrap();
        let (mut offset, mut read) = (0, String::new());
        loop {
            let got = piece(&file, offset, 7).unwrap();
            let (head, content) = got.split_once('\n').unwrap();
            assert!(head.contains("as text"), "{head}");
            read.push_str(content);
            offset += content.len() as u64;
            if head.contains("this is the end") {
                break;
            }
            assert!(head.ends_with(&format!("continue at offset {offset}]")), "{head}");
        }
        assert_eq!(read, text);
        std::fs::write(&file.file, b"\xff\0\x01").unwrap();
        assert_eq!(piece(&file, 1, 100).unwrap(), "[bytes 1 to 3 of 3 as base64; this is the end]\nAAE=");
    }
}
