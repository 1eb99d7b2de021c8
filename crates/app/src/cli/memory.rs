//! `greenroom memory`: the notes that an agent keeps across rooms.

use super::{
    Exit, ServerArgs,
    client::{ApiClient, responses::MemoryListResponse},
};
use crate::terminal::table;
use clap::{Args, Subcommand};
use domain::ids::MemoryId;
use serde_json::json;
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Subcommand, Debug)]
enum MemoryCommand {
    /// List the notes of an agent, newest first.
    List(ListMemoryArgs),
    /// Replace the text of a note.
    Edit(EditMemoryArgs),
    /// Delete a note.
    Delete(DeleteMemoryArgs),
}

#[derive(Args, Debug)]
struct ListMemoryArgs {
    /// The agent, by name or id.
    agent: String,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Args, Debug)]
struct EditMemoryArgs {
    /// The agent, by name or id.
    agent: String,
    /// The note's id, from the list.
    id: MemoryId,
    /// The new text.
    text: String,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Args, Debug)]
struct DeleteMemoryArgs {
    /// The agent, by name or id.
    agent: String,
    /// The note's id, from the list.
    id: MemoryId,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &MemoryArgs) -> anyhow::Result<Exit> {
    match &arguments.command {
        MemoryCommand::List(list) => {
            let client = ApiClient::new(&list.connection)?;
            let agent = client.find_agent(&list.agent).await?;
            let MemoryListResponse { memories } = client.get(&format!("/api/agents/{agent}/memories"), &[]).await?;
            let rows: Vec<Vec<String>> =
                memories.into_iter().map(|note| vec![note.id.to_string(), note.created_at, note.text]).collect();
            table::print(&mut io::stdout().lock(), &["id", "saved", "text"], &rows)?;
        }
        MemoryCommand::Edit(edit) => {
            let client = ApiClient::new(&edit.connection)?;
            let agent = client.find_agent(&edit.agent).await?;
            client.patch(&format!("/api/agents/{agent}/memories/{}", edit.id), &json!({"text": edit.text})).await?;
            writeln!(io::stdout().lock(), "note {} is changed", edit.id)?;
        }
        MemoryCommand::Delete(delete) => {
            let client = ApiClient::new(&delete.connection)?;
            let agent = client.find_agent(&delete.agent).await?;
            client.delete(&format!("/api/agents/{agent}/memories/{}", delete.id)).await?;
            writeln!(io::stdout().lock(), "note {} is deleted", delete.id)?;
        }
    }
    Ok(Exit::Success)
}
