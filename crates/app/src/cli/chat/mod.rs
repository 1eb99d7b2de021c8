//! `greenroom chat`: a conversation in the terminal, line by line. Answers stream, approvals are answered with a letter, and
//! Ctrl-C stops the answer and keeps what was said.
//!
//! `input` reads lines, `command` knows what begins with `/`, `session` is the conversation itself.

mod command;
mod input;
mod session;

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient,
        responses::{AgentListResponse, AgentResponse, RoomListResponse},
    },
    exit::UsageError,
    find::find,
};
use clap::Args;
use session::TerminalChat;

#[derive(Args, Debug)]
pub struct ChatArgs {
    /// The agent's name or id; left out, the only one there is, or the first one of --room.
    agent: Option<String>,
    /// Continue in this room: its name or id, or a part of the id.
    #[arg(long, value_name = "ROOM")]
    room: Option<String>,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: ChatArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let agents: AgentListResponse = client.get("/api/agents", &[]).await?;
    let room = match &arguments.room {
        Some(wanted) => {
            let rooms = RoomListResponse::all(&client).await?.rooms;
            let id = find("room", &rooms, wanted)?.id;
            rooms.into_iter().find(|room| room.id == id)
        }
        None => None,
    };
    let agent = match (&arguments.agent, &room) {
        (Some(wanted), _) => agents.find_or_list(wanted)?,
        (None, Some(room)) => {
            let first = room.agents.iter().find_map(|id| agents.agents.iter().find(|agent| agent.id == *id));
            first.ok_or_else(|| UsageError(format!("nobody is in the room {:?}; name an agent", room.name)))?
        }
        (None, None) => only_agent(&agents)?,
    };
    let (agent, names) = (agent.clone(), agents.names());
    TerminalChat::start(client, agent, names, room)?.run().await
}

fn only_agent(agents: &AgentListResponse) -> anyhow::Result<&AgentResponse> {
    match &agents.agents[..] {
        [] => anyhow::bail!("there is no agent yet; create one: greenroom create agent NAME --provider PROVIDER"),
        [only] => Ok(only),
        several => {
            let names: Vec<&str> = several.iter().map(|agent| agent.name.as_str()).collect();
            Err(UsageError(format!("name an agent: greenroom chat NAME; there are: {}", names.join(", "))).into())
        }
    }
}
