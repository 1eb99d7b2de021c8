//! `create_file`, `read_file`, `edit_file`, `delete_file` and `list_files`.

use super::{ProjectToolbox, ToolResult, changing, exact_text, flag, in_files, number, path, reading};
use crate::host_tools::{HostCall, HostToolDefinition, HostToolOutcome};
use serde_json::{Value, json};
use std::fmt::Write as _;
use workbench::{
    files::{EntryKind, read_to_limit},
    project_files::{ListedEntry, ProjectFiles, ProjectPath},
};

/// A text file that can be read or edited here; a larger one with commands.
const MAX_TEXT_BYTES: u64 = 4 << 20;
const DEFAULT_LINES: u64 = 1000;
/// Text of one result, for the model.
const MAX_READ_BYTES: usize = 60_000;
const MAX_LISTED: usize = 500;

fn path_property() -> Value {
    json!({"type": "string", "description": "A path in the folder of the project, such as src/main.py."})
}

fn text<E: ToString>(error: E) -> String {
    error.to_string()
}

pub fn create_definition() -> HostToolDefinition {
    let properties =
        json!({"path": path_property(), "content": {"type": "string", "description": "The whole text of the file."}});
    let description =
        "Creates a text file with its folders, or replaces it. To change a part of a file, use edit_file.";
    changing("create_file", description, properties, &["path", "content"])
}

pub async fn create(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let (path, content) = (path(&call, "path")?, exact_text(&call, "content")?);
    let (shown, size) = (path.clone(), format!("{} lines, {} bytes", content.lines().count(), content.len()));
    let is_new = in_files(toolbox, &call, move |files| files.write(&path, content.as_bytes()).map_err(text)).await?;
    let (done, change) = if is_new { ("Created", "created") } else { ("Replaced", "modified") };
    call.report_file(shown.as_str(), change).await;
    Ok(HostToolOutcome::success(format!("{done} {shown}: {size}.")))
}

pub fn read_definition() -> HostToolDefinition {
    let properties = json!({
        "path": path_property(),
        "first_line": {"type": "integer", "minimum": 1, "description": "Default: 1."},
        "lines": {"type": "integer", "minimum": 1, "description": "How many lines. Default: 1000."}
    });
    let description = "Reads a text file, or some of its lines. Each line has its number and a tab before it.";
    reading("read_file", description, properties, &["path"])
}

pub async fn read(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let path = path(&call, "path")?;
    let first = number(&call, "first_line").unwrap_or(1).max(1);
    let lines = number(&call, "lines").unwrap_or(DEFAULT_LINES).max(1);
    let content = in_files(toolbox, &call, move |files| content_of(files, &path)).await?;
    Ok(HostToolOutcome::success(numbered(&content, first, lines)))
}

/// The lines with their numbers, as many as fit, and what is left.
fn numbered(content: &str, first: u64, most: u64) -> String {
    let total = content.lines().count() as u64;
    let (mut shown, mut last) = (String::new(), first.saturating_sub(1));
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
    for line in content.lines().skip(skipped).take(usize::try_from(most).unwrap_or(usize::MAX)) {
        if shown.len() + line.len() > MAX_READ_BYTES {
            break;
        }
        last += 1;
        // Writing to a string does not fail.
        writeln!(shown, "{last}\t{line}").ok();
    }
    match (total, last) {
        (0, _) => "The file is empty.".to_owned(),
        (total, last) if last < first && first <= total => {
            format!("Line {first} of {total} is too long to show; use execute_command with cut or head -c.")
        }
        (total, last) if last < first => format!("The file has {total} lines; line {first} is not one of them."),
        (total, last) if last < total => {
            format!("{shown}[lines {first} to {last} of {total}; go on with first_line {}]", last + 1)
        }
        _ => shown,
    }
}

fn content_of(files: &ProjectFiles, path: &ProjectPath) -> Result<String, String> {
    let opened = files.open_file(path).map_err(text)?;
    let bytes = read_to_limit(opened.file, MAX_TEXT_BYTES).map_err(|error| match opened.bytes > MAX_TEXT_BYTES {
        true => format!("{path} is larger than 4 MiB; use execute_command with head, tail or sed"),
        false => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text; use execute_command"))
}

pub fn edit_definition() -> HostToolDefinition {
    let properties = json!({
        "path": path_property(),
        "old_text": {
            "type": "string",
            "description": "The text to replace, exactly as it is in the file, with its whitespace and without line numbers. It must be \
                            in the file once."
        },
        "new_text": {"type": "string"},
        "replace_all": {"type": "boolean", "description": "Replaces every occurrence. Default: false."}
    });
    let description = "Replaces a part of a text file. Read the file first.";
    changing("edit_file", description, properties, &["path", "old_text", "new_text"])
}

pub async fn edit(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let (path, old, new) = (path(&call, "path")?, exact_text(&call, "old_text")?, exact_text(&call, "new_text")?);
    if old.is_empty() || old == new {
        return Err("old_text: it must not be empty, and must differ from new_text".to_owned());
    }
    let (all, shown) = (flag(&call, "replace_all"), path.clone());
    let replaced = in_files(toolbox, &call, move |files| {
        let content = content_of(files, &path)?;
        match content.matches(&old).count() {
            0 => Err(format!(
                "old_text is not in {path}; read the file again and copy the text exactly, without line numbers"
            )),
            1.. if all => Ok(content.replace(&old, &new)),
            1 => Ok(content.replacen(&old, &new, 1)),
            found => Err(format!("old_text is in {path} {found} times; add lines around it, or set replace_all")),
        }
        .and_then(|content| files.write(&path, content.as_bytes()).map_err(text))
    });
    replaced.await?;
    call.report_file(shown.as_str(), "modified").await;
    Ok(HostToolOutcome::success(format!("Edited {shown}.")))
}

pub fn delete_definition() -> HostToolDefinition {
    let properties = json!({"path": path_property()});
    changing("delete_file", "Deletes a file, or a folder with everything in it.", properties, &["path"])
}

pub async fn delete(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let path = path(&call, "path")?;
    let shown = path.clone();
    in_files(toolbox, &call, move |files| files.remove(&path).map_err(text)).await?;
    call.report_file(shown.as_str(), "deleted").await;
    Ok(HostToolOutcome::success(format!("Deleted {shown}.")))
}

pub fn list_definition() -> HostToolDefinition {
    let properties = json!({
        "path": {"type": "string", "description": "A folder of the project; without it, the folder of the project itself."}
    });
    let description = "Lists a folder: its folders with a slash, then its files with their sizes.";
    reading("list_files", description, properties, &[])
}

pub async fn list(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let path = path(&call, "path")?;
    let listed = in_files(toolbox, &call, move |files| files.list(&path, MAX_LISTED).map_err(text)).await?;
    let line = |entry: &ListedEntry| match entry.kind {
        EntryKind::Folder => format!("{}/", entry.name),
        EntryKind::File => format!("{} ({} bytes)", entry.name, entry.bytes),
        EntryKind::Link => format!("{} (a link, which these tools do not follow)", entry.name),
        EntryKind::Special => format!("{} (a pipe, a socket or a device)", entry.name),
    };
    let mut lines: Vec<String> = listed.entries.iter().map(line).collect();
    if listed.is_truncated {
        lines.push(format!("[only {MAX_LISTED} entries are shown; use execute_command with ls or find]"));
    }
    Ok(HostToolOutcome::success(match lines.is_empty() {
        true => "The folder is empty.".to_owned(),
        false => lines.join("\n"),
    }))
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn lines_are_numbered_and_the_rest_is_named() {
        assert_eq!(numbered("a\nb\n", 1, 10), "1\ta\n2\tb\n");
        assert_eq!(numbered("a\nb\nc", 2, 1), "2\tb\n[lines 2 to 2 of 3; go on with first_line 3]");
        assert_eq!(numbered("", 1, 10), "The file is empty.");
        assert_eq!(numbered("a", 5, 10), "The file has 1 lines; line 5 is not one of them.");
        let long = format!("{}\nshort", "x".repeat(super::MAX_READ_BYTES + 1));
        assert!(numbered(&long, 1, 10).starts_with("Line 1 of 2 is too long"));
        assert_eq!(numbered(&long, 2, 10), "2\tshort\n");
    }
}
