//! `search_files`.

use super::{ProjectToolbox, ToolResult, exact_text, in_files, path, reading};
use crate::host_tools::{HostCall, HostToolDefinition, HostToolOutcome};
use serde_json::json;
use workbench::project_files::FileSearch;

const MAX_LINES: usize = 200;

pub fn definition() -> HostToolDefinition {
    let properties = json!({
        "pattern": {"type": "string", "description": "A regular expression, as in ripgrep."},
        "path": {"type": "string", "description": "A folder of the project; without it, all of the project."},
        "files": {"type": "string", "description": "Only files with such names, such as *.py."}
    });
    let description = "Searches the text of files, line by line. Leaves out hidden files, binary files, files over 8 MiB, and what a \
                       .gitignore names.";
    reading("search_files", description, properties, &["pattern"])
}

pub async fn search(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let (folder, pattern) = (path(&call, "path")?, exact_text(&call, "pattern")?);
    let names = call.text("files").map(str::to_owned);
    let cancel = call.cancel.clone();
    let report = in_files(toolbox, &call, move |files| {
        let search = FileSearch { pattern: &pattern, names: names.as_deref(), folder: &folder, limit: MAX_LINES };
        files.search(&search, &|| cancel.is_cancelled()).map_err(|error| error.to_string())
    });
    let report = report.await?;
    let mut lines: Vec<String> =
        report.lines.iter().map(|found| format!("{}:{}: {}", found.path, found.line, found.text)).collect();
    if report.is_truncated {
        lines.push("[there may be more; narrow the search]".to_owned());
    }
    Ok(HostToolOutcome::success(match lines.is_empty() {
        true => "Nothing was found.".to_owned(),
        false => lines.join("\n"),
    }))
}
