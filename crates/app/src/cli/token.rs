//! `greenroom token`: creates and revokes access tokens directly in the store, so that the first one needs no token.
//!
//! This file handles arguments and output. A token is shown once, when it is created; the store keeps only its hash.

use super::{DataArgs, Exit, store_access::open_store_at};
use crate::terminal::table;
use clap::{Args, Subcommand};
use domain::{actor::Actor, ids::TokenId, name::Name, owner::Owner, permission::Role};
use std::io::{self, Write};
use store::{Membership, TokenRecord};

#[derive(Args, Debug)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand, Debug)]
enum TokenCommand {
    /// Make a token and print it; it cannot be shown again.
    Create(CreateTokenArgs),
    /// List the tokens, without their secrets.
    List(DataArgs),
    /// Revoke a token; requests with it are rejected from then on.
    Revoke(RevokeTokenArgs),
}

#[derive(Args, Debug)]
pub struct CreateTokenArgs {
    /// The user as whom the token acts; created if there is none of this name.
    #[arg(long, default_value = domain::owner::LOCAL, value_parser = Name::parse)]
    user: Name,
    /// The workspace whose rooms and agents the token opens; by default the user's own, of the same name.
    #[arg(long, value_name = "NAME", value_parser = Name::parse)]
    workspace: Option<Name>,
    /// The user's role in the workspace: owner, admin, member or viewer. By default the role stays; a new member is the
    /// owner of a new workspace, and a member of another.
    #[arg(long)]
    role: Option<Role>,
    /// What it is for, as shown in the list.
    #[arg(long, value_name = "LABEL", value_parser = Name::parse)]
    name: Option<Name>,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Args, Debug)]
pub struct RevokeTokenArgs {
    /// The token's id, from the list.
    id: TokenId,
    #[command(flatten)]
    data: DataArgs,
}

pub async fn run(arguments: TokenArgs) -> anyhow::Result<Exit> {
    let (mut out, mut side) = (io::stdout().lock(), io::stderr().lock());
    match arguments.command {
        TokenCommand::Create(create) => {
            let store = open_store_at(&create.data).await?;
            let (secret, hash) = server::auth::token::generate()?;
            let workspace = Owner::new(create.workspace.unwrap_or_else(|| create.user.clone()));
            let member = Membership { workspace, user: create.user.clone(), role: create.role };
            let label = match create.name {
                Some(name) => name,
                None => Name::parse("token")?,
            };
            let id = store.create_token(&Actor::local(), &member, &label, &hash).await?;
            print_created(&mut out, &mut side, secret.reveal(), id, &create.user)?;
        }
        TokenCommand::List(data) => print_list(&mut out, &open_store_at(&data).await?.tokens().await?)?,
        TokenCommand::Revoke(revoke) => {
            match open_store_at(&revoke.data).await?.revoke_token(&Actor::local(), revoke.id).await {
                Ok(()) => print_revoked(&mut out, revoke.id)?,
                Err(store::StoreError::NotFound) => {
                    anyhow::bail!("there is no token {} that could be revoked", revoke.id)
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(Exit::Success)
}

/// The token alone goes to standard output, so that `TOKEN=$(greenroom token create)` works.
pub fn print_created(
    out: &mut impl Write,
    side: &mut impl Write,
    token: &str,
    id: TokenId,
    user: &Name,
) -> io::Result<()> {
    writeln!(out, "{token}")?;
    out.flush()?;
    writeln!(side, "token {id} for {user}. It is not shown again; keep it as GREENROOM_TOKEN.")?;
    writeln!(side, "Accounts are on from now: every request needs a token.")
}

pub fn print_list(out: &mut impl Write, tokens: &[TokenRecord]) -> io::Result<()> {
    let row = |token: &TokenRecord| {
        let state = token.revoked_at.map_or_else(|| "valid".to_owned(), |at| format!("revoked {at}"));
        vec![
            token.id.to_string(),
            token.user.clone(),
            token.owner.as_str().to_owned(),
            token.label.clone(),
            token.created_at.to_string(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    table::print(out, &["id", "user", "workspace", "name", "created", "state"], &rows)
}

pub fn print_revoked(out: &mut impl Write, id: TokenId) -> io::Result<()> {
    writeln!(out, "token {id} is revoked")
}

#[cfg(test)]
mod tests {
    use super::{print_created, print_list};
    use domain::{ids::TokenId, name::Name, owner::Owner, time::Timestamp};
    use store::TokenRecord;

    #[test]
    fn invariant_17_the_token_is_the_only_standard_output_and_is_in_no_list() {
        let (mut out, mut side) = (Vec::new(), Vec::new());
        let id = TokenId::generate();
        print_created(&mut out, &mut side, "grm_secret", id, &Name::parse("local").unwrap()).unwrap();
        assert_eq!(out, b"grm_secret\n");
        assert!(!String::from_utf8(side).unwrap().contains("grm_secret"));
        let (created_at, revoked_at) = (Timestamp::from_millis(0), None);
        let (user, label, last_used_at) = ("ann".into(), "laptop".into(), None);
        let record = TokenRecord { id, owner: Owner::local(), user, label, created_at, last_used_at, revoked_at };
        let mut out = Vec::new();
        print_list(&mut out, &[record]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("laptop") && text.contains("valid"), "{text}");
    }
}
