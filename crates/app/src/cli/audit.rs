//! `greenroom audit`: prints the newest entries of the audit log.

use super::{
    Exit, ServerArgs,
    client::{ApiClient, responses::AuditResponse},
};
use crate::terminal::table;
use clap::Args;
use serde_json::Value;
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct AuditArgs {
    /// How many entries to print, newest first.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Only this action, such as sign_in, refuse, create, delete, approve or start.
    #[arg(long)]
    action: Option<String>,
    /// The entries of all workspaces; only for the operator.
    #[arg(long)]
    all: bool,
    /// Print each entry as one line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &AuditArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let limit = arguments.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(arguments.action.as_deref().map(|action| ("action", action)));
    query.extend(arguments.all.then_some(("all", "true")));
    let AuditResponse { entries } = client.get("/api/audit", &query).await?;
    let mut out = io::stdout().lock();
    if arguments.json {
        for entry in entries {
            // JSON escapes control characters, so a line cannot break out of the terminal's.
            writeln!(out, "{entry}")?;
        }
        return Ok(Exit::Success);
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    table::print(&mut out, &["time", "action", "object", "times", "user", "credential", "address", "id"], &rows)?;
    Ok(Exit::Success)
}

fn row(entry: &Value) -> Vec<String> {
    let text = |field: &str| match &entry[field] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    ["created_at", "action", "object", "count", "user_name", "credential", "address", "object_id"].map(text).to_vec()
}

#[cfg(test)]
mod tests {
    use super::row;
    use serde_json::json;

    #[test]
    fn a_row_shows_what_is_missing() {
        let entry = json!({"created_at": "now", "action": "refuse", "object": "request", "count": 3, "user_name": null,
                           "credential": "none", "address": "192.0.2.1", "object_id": "GET /api/rooms"});
        assert_eq!(row(&entry), ["now", "refuse", "request", "3", "-", "none", "192.0.2.1", "GET /api/rooms"]);
    }
}
