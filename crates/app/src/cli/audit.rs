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
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
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
    let mut rows = Vec::new();
    let (mut left, mut before) = (arguments.limit, None::<String>);
    while left > 0 {
        let limit = left.min(PAGE).to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(arguments.action.as_deref().map(|action| ("action", action)));
        query.extend(arguments.all.then_some(("all", "true")));
        query.extend(before.as_deref().map(|before| ("before", before)));
        let AuditResponse { entries, next } = client.get("/api/audit", &query).await?;
        left = left.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        for entry in entries {
            match arguments.json {
                // JSON escapes control characters, so a line cannot break out of the terminal's.
                true => writeln!(io::stdout().lock(), "{entry}")?,
                false => rows.push(row(&entry)),
            }
        }
        if next.is_none() {
            break;
        }
        before = next;
    }
    if !arguments.json {
        table::print(&mut io::stdout().lock(), &HEAD, &rows)?;
    }
    Ok(Exit::Success)
}

const HEAD: [&str; 9] = ["time", "action", "object", "status", "times", "user", "credential", "address", "id"];
/// The largest page of the API.
const PAGE: u32 = 200;

fn row(entry: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let first = ["created_at", "action", "object"].map(|field| text(&entry[field]));
    let rest = ["count", "user_name", "credential", "address", "object_id"].map(|field| text(&entry[field]));
    // Only a refused request has one.
    let status = text(&entry["detail"]["status"]);
    first.into_iter().chain([status]).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::row;
    use serde_json::json;

    #[test]
    fn a_row_shows_what_is_missing() {
        let entry = json!({"created_at": "now", "action": "refuse", "object": "request", "count": 3, "user_name": null,
                           "credential": "none", "address": "192.0.2.1", "object_id": "GET /api/rooms",
                           "detail": {"status": 401}});
        assert_eq!(row(&entry), ["now", "refuse", "request", "401", "3", "-", "none", "192.0.2.1", "GET /api/rooms"]);
        assert_eq!(row(&json!({"action": "create"}))[..4], ["-", "create", "-", "-"]);
    }
}
