//! `greenroom auth`: credentials of the operator for browsers and scripts, from the local key of the data folder.

use super::{
    DataArgs, Exit, ServerArgs,
    client::{ApiClient, REQUEST_DEADLINE},
    exit::UsageError,
};
use crate::{config::AppConfig, data_folder, terminal::sanitize};
use clap::{Args, Subcommand};
use serde::Deserialize;
use std::io::{self, Write as _};

/// A session by link would survive the token that made the link.
const TOKEN_NOT_USED: &str = "note: a link is made with the local key of the server's data folder; the token (--token or \
                              GREENROOM_TOKEN) is not used. To sign in with a token, enter it on the sign-in page.";
/// Longer than any link.
const LINK: usize = 1000;

#[derive(Args, Debug)]
pub struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Subcommand, Debug)]
enum AuthCommand {
    /// Print a link that signs a browser in: it works once, for 10 minutes.
    Link(ServerArgs),
    /// Print the header for scripts: AUTH=$(greenroom auth header), then curl -H "$AUTH".
    Header(DataArgs),
}

#[derive(Deserialize)]
struct SignInLinkResponse {
    url: String,
}

pub async fn run(arguments: &AuthArgs) -> anyhow::Result<Exit> {
    match &arguments.command {
        AuthCommand::Link(connection) => {
            if connection.token.is_some() {
                writeln!(io::stderr().lock(), "{TOKEN_NOT_USED}")?;
            }
            let client = ApiClient::with_local_key(connection)?;
            let link: SignInLinkResponse =
                client.post("/api/session/links", &serde_json::json!({}), REQUEST_DEADLINE).await?;
            writeln!(io::stdout().lock(), "{}", sanitize::line(&link.url, LINK))?;
        }
        AuthCommand::Header(data) => {
            let file = data_folder::key_file(&AppConfig::load(&data.flags())?.store.data_dir);
            let Some(key) = data_folder::read_key(&file)? else {
                return Err(UsageError(format!(
                    "there is no key at {}; start the server once, or name its folder with --data-dir",
                    file.display()
                ))
                .into());
            };
            writeln!(io::stdout().lock(), "Authorization: Bearer {}", key.reveal())?;
        }
    }
    Ok(Exit::Success)
}
