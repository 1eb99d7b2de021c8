//! Streamable HTTP with our own HTTP client: rmcp's has no connection pool and no timeouts.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};
use std::{collections::BTreeMap, time::Duration};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// For messages other than calls. Calls have their own deadlines.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);

/// Follows no redirects, which could send keys to another host. Ignores proxy settings of the environment.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    // reqwest is built without a default provider and panics when none is installed.
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed the cryptography provider first");
    }
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        // Many servers close idle connections after five seconds; a call on a connection that is being closed is lost.
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}

pub fn streamable_http_transport(
    client: reqwest::Client,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).control_request_timeout(CONTROL_TIMEOUT);
    for (name, value) in parse_headers(headers)? {
        if let Some(name) = name {
            config.custom_headers.insert(name, value);
        }
    }
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

pub(super) fn parse_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let parse = |(name, value): (&String, &String)| {
        let invalid = || format!("its header {name:?} is not valid");
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value))
    };
    headers.iter().map(parse).collect()
}
