//! `greenroom create`, `rename` and `delete`, for agents and rooms.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient, REQUEST_DEADLINE,
        responses::{AgentListResponse, AgentResponse, RoomListResponse, RoomResponse},
    },
    find::{find, short_id},
};
use crate::terminal::sanitize;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct CreateArgs {
    #[command(subcommand)]
    object: NewObject,
}

#[derive(Subcommand, Debug)]
enum NewObject {
    /// Create an agent.
    Agent {
        name: String,
        /// What makes it answer: claude_code, codex, gemini, anthropic, openai, …
        #[arg(long)]
        provider: String,
        #[arg(long)]
        model: Option<String>,
        /// What it is told before everything else.
        #[arg(long, value_name = "TEXT")]
        system_prompt: Option<String>,
        #[command(flatten)]
        connection: ServerArgs,
    },
    /// Create a room.
    Room {
        name: String,
        /// An agent of the room, by its name or id; may be given several times.
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
        #[command(flatten)]
        connection: ServerArgs,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ObjectKind {
    Agent,
    Room,
}

#[derive(Args, Debug)]
pub struct RenameArgs {
    kind: ObjectKind,
    /// Its name or id, or a part of the id.
    which: String,
    /// The new name.
    name: String,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Args, Debug)]
pub struct DeleteArgs {
    kind: ObjectKind,
    /// Its name or id, or a part of the id.
    which: String,
    /// Erase it at once, without the grace period. For owners and admins.
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn create(arguments: &CreateArgs) -> anyhow::Result<Exit> {
    let (kind, id, name) = match &arguments.object {
        NewObject::Agent { name, provider, model, system_prompt, connection } => {
            let client = ApiClient::new(connection)?;
            let body = json!({"name": name, "provider": provider, "model": model, "system_prompt": system_prompt});
            let made: AgentResponse = client.post("/api/agents", &body, REQUEST_DEADLINE).await?;
            ("agent", made.id.0, made.name)
        }
        NewObject::Room { name, agents, connection } => {
            let client = ApiClient::new(connection)?;
            let known: AgentListResponse = client.get("/api/agents", &[]).await?;
            let agents = agents.iter().map(|wanted| known.find_or_list(wanted).map(|agent| agent.id));
            let body = json!({"name": name, "agents": agents.collect::<anyhow::Result<Vec<_>>>()?});
            let made: RoomResponse = client.post("/api/rooms", &body, REQUEST_DEADLINE).await?;
            ("room", made.id.0, made.name)
        }
    };
    report("created", kind, &name, id)
}

pub async fn rename(arguments: &RenameArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let (path, id, _) = object(&client, arguments.kind, &arguments.which).await?;
    client.patch(&path, &json!({"name": arguments.name})).await?;
    report("renamed", arguments.kind.word(), &arguments.name, id)
}

pub async fn delete(arguments: &DeleteArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let (path, id, name) = object(&client, arguments.kind, &arguments.which).await?;
    match arguments.purge {
        true => client.delete_with(&path, &[("purge", "true")]).await?,
        false => client.delete(&path).await?,
    }
    report("deleted", arguments.kind.word(), &name, id)
}

impl ObjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Room => "room",
        }
    }
}

/// The path, id and name of an object.
async fn object(client: &ApiClient, kind: ObjectKind, wanted: &str) -> anyhow::Result<(String, uuid::Uuid, String)> {
    Ok(match kind {
        ObjectKind::Agent => {
            let all: AgentListResponse = client.get("/api/agents", &[]).await?;
            let agent = all.find_or_list(wanted)?;
            (format!("/api/agents/{}", agent.id), agent.id.0, agent.name.clone())
        }
        ObjectKind::Room => {
            let all = RoomListResponse::all(client).await?;
            let room = find("room", &all.rooms, wanted)?;
            (format!("/api/rooms/{}", room.id), room.id.0, room.name.clone())
        }
    })
}

fn report(done: &str, kind: &str, name: &str, id: uuid::Uuid) -> anyhow::Result<Exit> {
    writeln!(io::stdout(), "{done} the {kind} {} ({})", sanitize::line(name, 200), short_id(id))?;
    Ok(Exit::Success)
}
