//! What is remembered: journals, the catalog of nouns, and the queue, on SQLite or PostgreSQL.
//!
//! Knows nothing above it: no provider, no engine, no HTTP. Start at [`journal`]: every change of a room is one
//! [`journal::Commit`], saved by one writer and shown only afterwards.

pub mod backup;
mod catalog;
mod database;
mod error;
pub mod journal;
mod open;
pub mod queue;

pub use catalog::{
    idempotency::{Attempt, Remembered},
    mcp_servers::{McpServerImport, McpServerRecord},
    mcp_trust::TrustedFile,
    memory::{MAX_MEMORIES, Memory},
    messages::History,
    runs::{NamedRun, NoCursor, RunCursor, RunFilter},
    sessions::{Footing, ProviderSession},
    skill_files::FileChange,
    skill_training::{NewProposal, NewRound},
    skill_uses::{SkillFigures, SkillUse},
    skills::{SkillChange, SkillVersion},
    tokens::{MAX_TOKENS, TokenRecord},
    tools::RememberedTool,
    usage::{Figures, UsageBy, UsageQuery, UsageRow},
    visits::VISIT,
};
pub use error::Error;
pub use open::{Access, Backend, Config, Planted, Store};
