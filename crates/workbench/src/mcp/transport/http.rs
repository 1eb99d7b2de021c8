//! Streamable HTTP, with a client of our own: rmcp's keeps no connections and has no limits of time.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};
use std::{collections::BTreeMap, time::Duration};

const CONNECT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(3);
/// For the messages around calls. Calls have deadlines of their own.
const CONTROL: Duration = Duration::from_secs(30);

/// Follows no redirects: they would carry keys to another place. Uses no proxy: that is the environment's word.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    // reqwest is built without a default of its own and panics when nobody has chosen one.
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed the cryptography provider first");
    }
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        // Servers close what is idle, many after five seconds; a call on a connection that closes just then is lost.
        .pool_idle_timeout(IDLE)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}

pub fn streamable(
    client: reqwest::Client,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).control_request_timeout(CONTROL);
    for (name, value) in parse_headers(headers)? {
        if let Some(name) = name {
            config.custom_headers.insert(name, value);
        }
    }
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

pub(super) fn parse_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let parse = |(name, value): (&String, &String)| {
        let unusable = || format!("its header {name:?} cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?, value))
    };
    headers.iter().map(parse).collect()
}
