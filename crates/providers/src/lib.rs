//! Providers: one trait, one adapter per folder.
//!
//! A provider turns one prompt into a stream of [`TurnEvent`]s. It knows nothing of rooms, journals, queues or HTTP. To
//! add one, copy `scripted/`, implement [`Provider`] and add it to the registry in `crates/app`.

pub mod acp;
mod agent_files;
mod agent_sandboxes;
pub mod agent_tokens;
pub mod claude_code;
pub mod codex;
mod crash_breaker;
pub mod direct;
#[cfg(test)]
mod fake_launcher;
pub mod file_kind;
pub mod gateway;
mod history;
pub mod host_tools;
pub mod jsonrpc;
mod login_grants;
mod model_access;
pub mod pool;
pub mod program;
pub mod recap;
mod registry;
pub mod scripted;
mod skill_files;
#[cfg(test)]
mod transcript;
mod truncate;
mod turn;
mod turn_port;

pub use agent_sandboxes::AgentSandboxes;
pub use history::TurnHistory;
pub use login_grants::LoginGrants;
pub use model_access::{ListModelsFuture, ModelAccess, ModelApiUse, ModelListError};
pub use registry::ProviderRegistry;
pub use turn::{
    AgentWorkspace, AttachedFile, Capabilities, CloseFuture, HistoryAuthor, HistoryMessage, InspectFuture, Inspection,
    LaterMessages, Provider, ProviderEvent, RefusedSetting, ResumableSession, RoomRequest, SavedInSession, TurnChannel,
    TurnCommand, TurnEnd, TurnEvent, TurnFuture, TurnOutcome, TurnRequest,
};
