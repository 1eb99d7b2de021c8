//! `greenroom token`: creates and revokes access tokens directly in the store, so that the first one needs no token.
//!
//! This file handles arguments and output. A token is shown once, when it is created; the store keeps only its hash.

use super::{DataArgs, Exit, store_access::open_store_at};
use crate::terminal::table;
use clap::{Args, Subcommand};
use domain::{actor::Actor, ids::TokenId, name::Name, owner::Owner, permission::Role, scope::Scopes, time::Timestamp};
use std::{
    io::{self, Write},
    time::Duration,
};
use store::{Membership, NewToken, TokenRecord};

/// Ten years; longer is `never`.
const MAX_DAYS: u64 = 3650;

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
    /// The user as whom the token acts; created if there is none of this name. `local` is the operator: you.
    #[arg(long, value_parser = Name::parse)]
    user: Name,
    /// The workspace whose rooms and agents the token opens; by default the user's own, of the same name.
    #[arg(long, value_name = "NAME", value_parser = Name::parse)]
    workspace: Option<Name>,
    /// The user's role in the workspace: owner, admin, member or viewer. By default the role stays; a new member is the
    /// owner of a new workspace, and a member of another.
    #[arg(long)]
    role: Option<Role>,
    /// What it may be used for: read, run, approve, admin, separated by commas, or all.
    #[arg(long, default_value_t = Scopes::READ_AND_RUN)]
    scopes: Scopes,
    /// When it ends: a number of days such as 90d, or never.
    #[arg(long, value_name = "DAYS", default_value = "90d", value_parser = TokenLifetime::parse)]
    expires: TokenLifetime,
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
            let expires_at = create.expires.0.map(|lifetime| Timestamp::now() + lifetime);
            let token = NewToken { label, hash, scopes: create.scopes, expires_at };
            let id = store.create_token(&Actor::local(), &member, &token).await?;
            print_created(&mut out, &mut side, secret.reveal(), id, &create.user, &token)?;
        }
        TokenCommand::List(data) => print_list(&mut out, &open_store_at(&data).await?.tokens().await?)?,
        TokenCommand::Revoke(revoke) => {
            match open_store_at(&revoke.data).await?.revoke_token(&Actor::local(), revoke.id, None).await {
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

/// The token alone goes to standard output, so that `TOKEN=$(greenroom token create --user local)` works.
pub fn print_created(
    out: &mut impl Write,
    side: &mut impl Write,
    token: &str,
    id: TokenId,
    user: &Name,
    limits: &NewToken,
) -> io::Result<()> {
    writeln!(out, "{token}")?;
    out.flush()?;
    writeln!(
        side,
        "token {id} for {user}, scopes {}. It is not shown again; keep it as GREENROOM_TOKEN.",
        limits.scopes
    )?;
    match limits.expires_at {
        Some(ends) => writeln!(side, "It expires {ends}; --expires sets another time."),
        None => writeln!(
            side,
            "It NEVER expires: who finds it in a year can still use it. Revoke it when it is not needed."
        ),
    }
}

/// How long a token is valid; `None`: it does not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TokenLifetime(Option<Duration>);

impl TokenLifetime {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        let days =
            text.strip_suffix('d').and_then(|days| days.parse().ok()).filter(|days| (1..=MAX_DAYS).contains(days));
        let seconds = days.map(|days: u64| days * 24 * 3600);
        let wrong = || format!("a number of days from 1d to {MAX_DAYS}d, or never");
        seconds.map(|seconds| Self(Some(Duration::from_secs(seconds)))).ok_or_else(wrong)
    }
}

pub fn print_list(out: &mut impl Write, tokens: &[TokenRecord]) -> io::Result<()> {
    let row = |token: &TokenRecord| {
        let state = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) if at <= Timestamp::now() => format!("expired {at}"),
            (None, Some(at)) => format!("valid until {at}"),
            (None, None) => "valid, never expires".to_owned(),
        };
        vec![
            token.id.to_string(),
            token.user.clone(),
            token.owner.as_str().to_owned(),
            token.label.clone(),
            token.scopes.to_string(),
            token.created_at.to_string(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    table::print(out, &["id", "user", "workspace", "name", "scopes", "created", "state"], &rows)
}

pub fn print_revoked(out: &mut impl Write, id: TokenId) -> io::Result<()> {
    writeln!(out, "token {id} is revoked")
}

#[cfg(test)]
mod tests {
    use super::{TokenLifetime, print_created, print_list};
    use domain::{ids::TokenId, name::Name, owner::Owner, scope::Scopes, time::Timestamp};
    use store::{NewToken, TokenRecord};

    #[test]
    fn invariant_17_the_token_is_the_only_standard_output_and_is_in_no_list() {
        let (mut out, mut side) = (Vec::new(), Vec::new());
        let id = TokenId::generate();
        let label = Name::parse("laptop").unwrap();
        let limits = NewToken::unlimited(label.clone(), [0; 32]);
        print_created(&mut out, &mut side, "grm_secret", id, &Name::parse("local").unwrap(), &limits).unwrap();
        assert_eq!(out, b"grm_secret\n");
        let side = String::from_utf8(side).unwrap();
        assert!(!side.contains("grm_secret") && side.contains("NEVER expires"), "{side}");
        let record = TokenRecord {
            id,
            owner: Owner::local(),
            user: "ann".into(),
            label: label.to_string(),
            created_at: Timestamp::from_millis(0),
            scopes: Scopes::READ_AND_RUN,
            expires_at: Some(Timestamp::from_millis(1)),
            parent: None,
            last_used_at: None,
            revoked_at: None,
        };
        let mut out = Vec::new();
        print_list(&mut out, &[record]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("laptop") && text.contains("read,run") && text.contains("expired 1970"), "{text}");
    }

    #[test]
    fn m11_a_lifetime_is_a_number_of_days_or_never() {
        let days = |text: &str| TokenLifetime::parse(text).map(|it| it.0.map(|lifetime| lifetime.as_secs() / 86400));
        assert_eq!((days("90d"), days("1d"), days("never")), (Ok(Some(90)), Ok(Some(1)), Ok(None)));
        for bad in ["", "0d", "90", "d", "-1d", "99999d", "forever"] {
            assert!(days(bad).is_err(), "{bad}");
        }
    }
}
