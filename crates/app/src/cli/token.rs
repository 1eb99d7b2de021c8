//! `greenroom token`: creates and revokes access tokens directly in the store, so that the first one needs no token.
//!
//! This file handles arguments and output. A token is shown once, when it is created; the store keeps only its hash.

use super::{DataArgs, Exit, store_access::open_store_at};
use crate::terminal::table;
use clap::{Args, Subcommand};
use domain::{ids::TokenId, name::Name, owner::Owner};
use std::io::{self, Write};
use store::TokenRecord;

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
    /// Whose rooms and agents the token opens.
    #[arg(long, default_value = domain::owner::LOCAL, value_parser = Name::parse)]
    user: Name,
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
            let owner = Owner::new(create.user.clone());
            let label = match create.name {
                Some(name) => name,
                None => Name::parse("token")?,
            };
            let id = store.create_token(&owner, &label, &hash).await?;
            print_created(&mut out, &mut side, secret.reveal(), id, &create.user)?;
        }
        TokenCommand::List(data) => print_list(&mut out, &open_store_at(&data).await?.tokens().await?)?,
        TokenCommand::Revoke(revoke) => match open_store_at(&revoke.data).await?.revoke_token(revoke.id).await {
            Ok(()) => print_revoked(&mut out, revoke.id)?,
            Err(store::StoreError::NotFound) => anyhow::bail!("there is no token {} that could be revoked", revoke.id),
            Err(error) => return Err(error.into()),
        },
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
            token.owner.as_str().to_owned(),
            token.label.clone(),
            token.created_at.to_string(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    table::print(out, &["id", "user", "name", "created", "state"], &rows)
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
        let (label, last_used_at) = ("laptop".into(), None);
        let record = TokenRecord { id, owner: Owner::local(), label, created_at, last_used_at, revoked_at };
        let mut out = Vec::new();
        print_list(&mut out, &[record]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("laptop") && text.contains("valid"), "{text}");
    }
}
