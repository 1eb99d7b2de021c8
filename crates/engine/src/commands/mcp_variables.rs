//! The variables of the server's environment that settings of MCP servers may use: listed, allowed and disallowed by the
//! operator. Their values are never shown.

use crate::{Engine, EngineError};
use domain::{actor::Actor, mcp::may_be_allowed, owner::Owner, permission::Permission};
use serde::Serialize;
use store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = AllowedVariable)]
pub struct AllowedVariableView {
    /// The name of the environment variable.
    pub name: String,
    /// Who allowed it.
    pub source: AllowedVariableSource,
    /// Whether the server's environment has it.
    pub set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllowedVariableSource {
    /// `mcp.variables` of the configuration, or `HOME`, which is always allowed.
    Configuration,
    /// This API.
    Api,
}

impl Engine {
    pub async fn allowed_variables(&self, actor: &Actor) -> Result<Vec<AllowedVariableView>, EngineError> {
        let owner = actor.require(Permission::Operate)?;
        let variables = &self.config().mcp_variables;
        let view =
            |name: &str, source| AllowedVariableView { name: name.to_owned(), source, set: variables.is_set(name) };
        let configured = variables.configured().map(|name| view(name, AllowedVariableSource::Configuration));
        let mut all: Vec<AllowedVariableView> = configured.collect();
        let added = self.store().mcp_variables(owner).await?;
        let added = added.iter().filter(|name| !variables.is_configured(name));
        all.extend(added.map(|name| view(name, AllowedVariableSource::Api)));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    pub async fn allow_variable(&self, actor: &Actor, name: &str) -> Result<(), EngineError> {
        actor.require(Permission::Operate)?;
        if !may_be_allowed(name) {
            let detail = format!(
                "{name:?} cannot be allowed: a name has at most 128 letters, digits and _, and settings of Greenroom \
                 (GREENROOM_…) are never available"
            );
            return Err(EngineError::refused("", detail));
        }
        self.store().allow_mcp_variable(actor, name).await?;
        Ok(self.refresh_mcp_variables().await?)
    }

    /// Servers that run already keep the value that they were started with.
    pub async fn disallow_variable(&self, actor: &Actor, name: &str) -> Result<(), EngineError> {
        actor.require(Permission::Operate)?;
        if self.config().mcp_variables.is_configured(name) {
            let detail = format!("{name} is allowed by the configuration (mcp.variables); remove it there");
            return Err(EngineError::Conflict(detail));
        }
        self.store().disallow_mcp_variable(actor, name).await?;
        Ok(self.refresh_mcp_variables().await?)
    }

    /// Another server on this database may have changed them.
    pub(crate) async fn refresh_mcp_variables(&self) -> Result<(), StoreError> {
        let added = self.store().mcp_variables(&Owner::local()).await?;
        self.config().mcp_variables.set_added(added);
        Ok(())
    }
}
