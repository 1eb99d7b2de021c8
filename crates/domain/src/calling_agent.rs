//! Who is behind a request that a program sends with a person's token: the agent in whose turn the program runs. Greenroom
//! tells it to the MCP servers that are Greenroom servers, and such a server makes the runs that are started this way children
//! of the agent's run. It is a statement, not a credential: it takes rights away and gives none.

use crate::ids::{AgentId, RoomId};
use std::{fmt, str::FromStr};

/// An agent in a room. It has at most one turn there at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallingAgent {
    pub room_id: RoomId,
    pub agent_id: AgentId,
}

impl CallingAgent {
    /// The header of a request.
    pub const HEADER: &str = "greenroom-calling-agent";
    /// The variable by which a program that sends such requests gets it.
    pub const VARIABLE: &str = "GREENROOM_CALLING_AGENT";
}

impl fmt::Display for CallingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.room_id, self.agent_id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the calling agent has the form ROOM/AGENT, with two ids")]
pub struct CallingAgentError;

impl FromStr for CallingAgent {
    type Err = CallingAgentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (room, agent) = text.split_once('/').ok_or(CallingAgentError)?;
        let room_id = room.parse().map_err(|_| CallingAgentError)?;
        Ok(Self { room_id, agent_id: agent.parse().map_err(|_| CallingAgentError)? })
    }
}

#[cfg(test)]
mod tests {
    use super::{CallingAgent, CallingAgentError};
    use crate::ids::{AgentId, RoomId};

    #[test]
    fn is_written_and_read() {
        let caller = CallingAgent { room_id: RoomId::generate(), agent_id: AgentId::generate() };
        assert_eq!(caller.to_string().parse(), Ok(caller));
        let room = caller.room_id;
        for wrong in ["", "/", "a/b", &room.to_string(), &format!("{room}/"), &format!("{caller}/{room}")] {
            assert_eq!(wrong.parse::<CallingAgent>(), Err(CallingAgentError), "{wrong}");
        }
    }
}
