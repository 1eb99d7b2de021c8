//! The ports that commands of a project listen on, and connections to them for previews.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::ProjectId,
    permission::Permission,
};
use providers::gateway::{GATEWAY_PORT, HOST_TOOLS_PORT};
use serde::Serialize;
use serde_json::json;
use std::{any::Any, time::Duration};
use tokio::{net::TcpStream, time::timeout};
use workbench::project_sandbox::{EGRESS_PORT, ListeningPort, SandboxLease};

/// The server itself answers them inside.
const OF_SERVER: [u16; 3] = [GATEWAY_PORT, HOST_TOOLS_PORT, EGRESS_PORT];
/// A program that listens accepts at once, unless it is overloaded.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A port on which something in the sandbox of a project listens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct ProjectPort {
    /// Its number.
    pub port: u16,
    /// The address inside, such as `127.0.0.1` or `0.0.0.0`.
    #[schema(examples("127.0.0.1"))]
    pub address: String,
}

/// A connection to a port inside. The sandbox is in use as long as `held` is.
pub struct PortConnection {
    pub stream: TcpStream,
    pub held: Box<dyn Any + Send>,
}

impl Engine {
    /// The ports of a project. None if its sandbox does not run: this does not start it.
    pub async fn project_ports(&self, actor: &Actor, id: ProjectId) -> Result<Vec<ProjectPort>, EngineError> {
        let Some(lease) = self.running_sandbox(actor, Permission::Read, id).await? else { return Ok(Vec::new()) };
        let ports = lease.listening_ports().await.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let of_commands = ports.into_iter().filter(|found| !OF_SERVER.contains(&found.port));
        Ok(of_commands
            .map(|ListeningPort { port, address }| ProjectPort { port, address: address.to_string() })
            .collect())
    }

    /// Records that a preview of a port is opened. Nothing has to listen there yet.
    pub async fn record_preview(&self, actor: &Actor, id: ProjectId, port: u16) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Post)?;
        self.store().project(owner, id).await?;
        if port == 0 || OF_SERVER.contains(&port) {
            let detail = format!("port: {port} cannot be opened: the server itself answers it inside; use another");
            return Err(EngineError::refused("", detail));
        }
        let entry = AuditEntry::new(actor, AuditAction::Create, AuditedObject::Preview, port)
            .with_detail(json!({"project": id}));
        Ok(self.store().record_audit(entry).await?)
    }

    /// Connects to a port inside. The errors are for people who look at the preview.
    pub async fn connect_project_port(
        &self,
        actor: &Actor,
        id: ProjectId,
        port: u16,
    ) -> Result<PortConnection, EngineError> {
        let Some(lease) = self.running_sandbox(actor, Permission::Post, id).await? else {
            let detail = "The sandbox of the project does not run. Start the program again, then reload.";
            return Err(EngineError::Conflict(detail.to_owned()));
        };
        if OF_SERVER.contains(&port) {
            return Err(EngineError::NotFound);
        }
        let refused = || {
            EngineError::Conflict(format!(
                "Nothing listens on port {port} of the project. Start the program, then reload."
            ))
        };
        match timeout(CONNECT_TIMEOUT, lease.connect(port)).await {
            Ok(Ok(stream)) => Ok(PortConnection { stream, held: Box::new(lease) }),
            Ok(Err(_)) | Err(_) => Err(refused()),
        }
    }

    async fn running_sandbox(
        &self,
        actor: &Actor,
        permission: Permission,
        id: ProjectId,
    ) -> Result<Option<SandboxLease>, EngineError> {
        let space = self.file_space(actor, permission, id).await?;
        match self.config().projects.sandboxes.find(space.key).await {
            Some(lease) if !lease.has_own_network() => {
                let detail =
                    "The sandbox of this project has no network of its own: its ports are those of the machine.";
                Err(EngineError::refused("", detail))
            }
            found => Ok(found),
        }
    }
}
