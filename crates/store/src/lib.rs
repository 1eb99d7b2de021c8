//! Persistence: the journals, the catalog of objects, and the run queue, on SQLite or PostgreSQL.
//!
//! The store must not know providers, the engine or HTTP. Start at [`journal`]: every change of a room is one
//! [`journal::Commit`], stored by one writer and published only afterwards.

pub mod backup;
mod catalog;
mod commit;
mod counted_audit;
mod database;
mod erase;
mod error;
pub mod journal;
mod migrations;
pub mod notify;
mod open;
mod private_file;
pub mod queue;
mod row;
mod search;
mod secrets;
mod upgrade;

pub use catalog::{
    approvals::{ApprovalPage, WaitingApproval},
    audit::{AuditFilter, AuditLimits, AuditRecord},
    browser_sessions::BROWSER_SESSION_LIFETIME,
    history::MessageHistory,
    idempotency::EarlierResult,
    list_cursor::{InvalidCursor, ListCursor},
    mcp_servers::{MAX_MCP_SERVERS, McpServerImport, McpServerRecord},
    mcp_trust::TrustedContent,
    members::Membership,
    memory::{MAX_MEMORIES, MemoryRecord},
    messages::TranscriptRange,
    provider_sessions::RunStartState,
    provider_settings::{MAX_PROVIDER_SETTINGS, SettingsWrite},
    runs::{NamedRun, RunFilter},
    signals::SETTLED_SIGNALS_PER_DELETE,
    skill_files::SkillFilesChange,
    skill_training::{NewProposal, NewRound},
    skill_uses::{SkillStats, SkillUse},
    skills::{SkillChange, SkillVersion},
    tapes::{CellRun, TapeRecord},
    tokens::{MAX_TOKENS, NewToken, TokenRecord},
    tools::RememberedTool,
    usage::{UsageGrouping, UsageQuery, UsageRow, UsageTotals},
    workspaces::WorkspaceUse,
};
pub use commit::{IdempotentRequest, ProviderSessionRecord};
pub use erase::{ErasedFiles, ErasedObject, Erasure, ErasureStep};
pub use error::{StoreError, StoreFailure};
#[cfg(feature = "test-hooks")]
pub use open::HeldConnections;
pub use open::{Backend, PlantedBug, Store, StoreAccess, StoreConfig};
pub use search::{FoundMessage, IndexStep};
pub use secrets::{SecretError, add_secrets_key, create_secrets_key};
pub use upgrade::{SchemaState, schema_state};
