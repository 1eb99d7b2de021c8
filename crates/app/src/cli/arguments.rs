//! What can be typed. The words here are the manual: `docs/cli.md` says more, not other.

use super::{backup, cancel, completions, events, run, token};
use crate::config::{Flags, Secret};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A self-hosted server that runs AI agents in rooms.
#[derive(Parser, Debug)]
#[command(name = "greenroom", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start the server.
    Serve(Serve),
    /// Ask an agent something and print its answer as it comes.
    Run(run::Arguments),
    /// List the rooms.
    Rooms(Connection),
    /// List the agents.
    Agents(Connection),
    /// Print the events of a room, one JSON object per line.
    Events(events::Arguments),
    /// Stop a run; returns when it has really stopped.
    Cancel(cancel::Arguments),
    /// Speak MCP on standard input and output, for clients that start their servers themselves.
    Mcp(Connection),
    /// Create, list and revoke access tokens, in the store itself.
    Token(token::Arguments),
    /// Check what is installed, what is missing and how to get it.
    Doctor(Place),
    /// Write everything that is stored to one file.
    Backup(backup::Backup),
    /// Replace everything that is stored by what is in a backup.
    Restore(backup::Restore),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
}

#[derive(Args, Debug)]
pub struct Serve {
    /// Address and port to serve on; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    #[command(flatten)]
    pub place: Place,
}

impl Serve {
    pub fn flags(&self) -> Flags {
        Flags { listen: self.listen.clone(), ..self.place.flags() }
    }
}

/// Where the data is.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// Directory of the data.
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: Option<String>,
    /// sqlite://PATH or postgres://…; an SQLite file in the data directory unless set.
    #[arg(long, value_name = "URL")]
    pub database: Option<Secret>,
    /// Configuration file; otherwise greenroom.toml in the data directory or here, if there is one.
    #[arg(long, value_name = "FILE", env = "GREENROOM_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
}

impl Place {
    pub fn flags(&self) -> Flags {
        Flags {
            config: self.config.clone(),
            listen: None,
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
        }
    }
}

/// Which server to talk to.
#[derive(Args, Clone, Debug)]
pub struct Connection {
    /// The server's address.
    #[arg(
        long,
        value_name = "URL",
        env = "GREENROOM_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7878"
    )]
    pub server: String,
    /// An access token, where the server asks for one.
    #[arg(long, env = "GREENROOM_TOKEN", hide_env_values = true)]
    pub token: Option<Secret>,
}
