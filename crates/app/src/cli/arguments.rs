//! The command line arguments. Their doc comments are the help texts; `docs/cli.md` has more detail.

use super::{
    agents, approve, audit, auth, backup, budget, cancel, chat, completions, doctor, events, memory, objects, rooms,
    run, secrets, token,
};
use crate::{
    config::{ConfigFlags, NodeRole, SecretString},
    tls::CertificateFingerprint,
};
use clap::{Args, Parser, Subcommand};
use domain::calling_agent::CallingAgent;
use std::path::PathBuf;

/// A self-hosted server that runs AI agents in rooms.
#[derive(Parser, Debug)]
#[command(name = "greenroom", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Start the server.
    Serve(ServeArgs),
    /// Talk with an agent, line by line.
    Chat(chat::ChatArgs),
    /// Ask an agent something and print its answer as it comes.
    Run(run::RunArgs),
    /// List the rooms.
    Rooms(rooms::RoomsArgs),
    /// List the agents, or move them between the server and a folder.
    Agents(agents::AgentsArgs),
    /// Create an agent or a room.
    Create(objects::CreateArgs),
    /// Rename an agent or a room.
    Rename(objects::RenameArgs),
    /// Delete an agent or a room.
    Delete(objects::DeleteArgs),
    /// List the tool calls and questions that wait for a person, or answer one.
    Approve(approve::ApproveArgs),
    /// Print the events of a room, one JSON object per line.
    Events(events::EventsArgs),
    /// Stop a run; returns when it has really stopped.
    Cancel(cancel::CancelArgs),
    /// List, set and delete budgets: what runs may cost.
    Budget(budget::BudgetArgs),
    /// List, edit and delete the notes that an agent keeps across rooms.
    Memory(memory::MemoryArgs),
    /// Speak MCP on standard input and output, for clients that start their servers themselves.
    Mcp(ServerArgs),
    /// Print a sign-in link for a browser, or the header for scripts.
    Auth(auth::AuthArgs),
    /// Create, list and revoke access tokens, in the store itself.
    Token(token::TokenArgs),
    /// Print who did what on the server: changes, sign-ins, refused requests.
    Audit(audit::AuditArgs),
    /// Change the key that stored secrets are encrypted with.
    Secrets(secrets::SecretsArgs),
    /// Check what is installed, what is missing and how to get it: on this machine, or at the server that you name.
    Doctor(doctor::DoctorArgs),
    /// Write everything that is stored to one file.
    Backup(backup::BackupArgs),
    /// Replace everything that is stored by what is in a backup.
    Restore(backup::RestoreArgs),
    /// Say which migrations a start of this binary would apply to the database, without changing it.
    UpgradeCheck(DataArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Address and port to serve on; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Serve clients (web), execute runs (worker), or both; web and worker need PostgreSQL.
    #[arg(long, value_name = "ROLE", value_parser = NodeRole::NAMES)]
    pub role: Option<String>,
    /// Ask nobody for a credential: every program and every user of this machine becomes the operator, agents' programs
    /// included. On loopback only.
    #[arg(long)]
    pub no_auth: bool,
    /// Certificate for https, a PEM file; those that lead to its authority follow it. Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<String>,
    /// The certificate's private key, a PEM file.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Serve https with a certificate that the server makes itself; its fingerprint is printed.
    #[arg(long)]
    pub tls_self_signed: bool,
    /// Serve plain http to a proxy with TLS, also on an address other than loopback. Nothing but the proxy may reach it.
    #[arg(long)]
    pub behind_tls_proxy: bool,
    /// Do not open the sign-in link in a browser.
    #[arg(long)]
    pub no_open: bool,
    #[command(flatten)]
    pub data: DataArgs,
}

impl ServeArgs {
    pub fn flags(&self) -> ConfigFlags {
        ConfigFlags {
            listen: self.listen.clone(),
            role: self.role.clone(),
            no_auth: self.no_auth,
            tls_certificate: self.tls_certificate.clone(),
            tls_key: self.tls_key.clone(),
            tls_self_signed: self.tls_self_signed,
            behind_tls_proxy: self.behind_tls_proxy,
            ..self.data.flags()
        }
    }
}

/// Where the data is.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Directory of the data.
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: Option<String>,
    /// sqlite://PATH or postgres://…; an SQLite file in the data directory unless set.
    #[arg(long, value_name = "URL")]
    pub database: Option<SecretString>,
    /// Configuration file; otherwise greenroom.toml in the data directory or here, if there is one.
    #[arg(long, value_name = "FILE", env = "GREENROOM_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
}

impl DataArgs {
    pub fn flags(&self) -> ConfigFlags {
        ConfigFlags {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            ..ConfigFlags::default()
        }
    }
}

/// Which server to talk to.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// The server's address.
    #[arg(
        long,
        value_name = "URL",
        env = "GREENROOM_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7878"
    )]
    pub server: String,
    /// An access token. Without one, the local key of the data directory is sent to a server on this machine.
    #[arg(long, env = "GREENROOM_TOKEN", hide_env_values = true)]
    pub token: Option<SecretString>,
    /// Data directory of the server on this machine, for its local key and its certificate.
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: Option<String>,
    /// Trust the certificates of this PEM file, and no others: an authority, or a self-signed certificate.
    #[arg(long, value_name = "FILE", env = "GREENROOM_CA", hide_env_values = true, conflicts_with = "fingerprint")]
    pub ca: Option<PathBuf>,
    /// Trust the certificate with this SHA-256 fingerprint, and no other. The server prints it at its start.
    #[arg(long, value_name = "SHA256", env = "GREENROOM_FINGERPRINT", hide_env_values = true)]
    pub fingerprint: Option<CertificateFingerprint>,
    /// The agent in whose turn this program runs. Set by the server that started it.
    #[arg(long, env = CallingAgent::VARIABLE, hide = true)]
    pub calling_agent: Option<CallingAgent>,
}
