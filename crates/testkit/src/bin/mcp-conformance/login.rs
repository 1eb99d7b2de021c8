//! An OAuth login without a person: the suite's authorization server approves at once.

use crate::ScenarioContext;
use anyhow::Context as _;
use reqwest::Url;
use rmcp::transport::auth::{AuthorizationCallback, AuthorizationRequest, OAuthState};
use std::collections::BTreeSet;

const METADATA: &str = "https://conformance-test.local/client-metadata.json";
const REDIRECT: &str = "http://localhost:3000/callback";

/// Follows a server's challenge and returns an access token. `scopes` accumulates the requested scopes, because a later
/// challenge adds scopes and does not replace them.
pub async fn token(
    url: &str,
    challenge: Option<String>,
    scopes: &mut BTreeSet<String>,
    context: &ScenarioContext,
) -> anyhow::Result<String> {
    let mut login = OAuthState::new(url, None).await?;
    let mut request = AuthorizationRequest::new(REDIRECT);
    request = match (&context.client_id, &context.client_secret) {
        (Some(id), Some(secret)) => request.with_preregistered_client(id).with_client_secret(secret),
        _ => request.with_client_name("greenroom").with_client_metadata_url(METADATA),
    };
    if let Some(challenge) = challenge {
        if !scopes.is_empty() {
            scopes.extend(scopes_of(&challenge));
            request = request.with_scopes(scopes.iter().cloned());
        }
        request = request.with_challenge(challenge);
    }
    login.start_authorization(request).await?;
    let page = login.get_authorization_url().await?;
    let asked = Url::parse(&page)?.query_pairs().find(|(name, _)| name == "scope").map(|(_, words)| words.into_owned());
    scopes.extend(asked.unwrap_or_default().split_whitespace().map(str::to_owned));
    let callback = authorize(&page).await?;
    login.handle_callback_with_issuer(&callback.code, &callback.csrf_token, callback.issuer.as_deref()).await?;
    let manager = login.into_authorization_manager().context("the login did not finish")?;
    Ok(manager.get_access_token().await?)
}

fn scopes_of(challenge: &str) -> Vec<String> {
    let quoted = challenge.split_once("scope=\"").and_then(|(_, rest)| rest.split_once('"'));
    quoted.map(|(words, _)| words.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

async fn authorize(url: &str) -> anyhow::Result<AuthorizationCallback> {
    let response = workbench::mcp::transport::http_client(None)?.get(url).send().await?;
    let location = response.headers().get("location").context("the login response has no location header")?;
    Ok(AuthorizationCallback::from_redirect_url(location.to_str()?)?)
}
