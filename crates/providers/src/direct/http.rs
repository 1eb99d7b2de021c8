//! The HTTP connections of all model APIs. A provider with a workspace's own settings is made for one turn, so its
//! connections are here.

use super::{
    access::{ApiAccess, is_local},
    wire::failure::{ModelFailure, ModelFailureKind},
};
use reqwest::redirect::Policy;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use workbench::egress::{EgressPolicy, EgressResolver};

/// Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ModelHttp(Arc<ModelHttpInner>);

#[derive(Debug)]
struct ModelHttpInner {
    connect: Duration,
    /// Which addresses others than the operator may name.
    egress: Arc<EgressPolicy>,
    // Created on first use, because a client reads the machine's certificates.
    plain: OnceLock<Result<reqwest::Client, String>>,
    local: OnceLock<Result<reqwest::Client, String>>,
    guarded: OnceLock<Result<reqwest::Client, String>>,
}

impl ModelHttp {
    pub fn new(connect: Duration, egress: EgressPolicy) -> Self {
        Self(Arc::new(ModelHttpInner {
            connect,
            egress: Arc::new(egress),
            plain: OnceLock::new(),
            local: OnceLock::new(),
            guarded: OnceLock::new(),
        }))
    }

    /// Why an address of somebody else than the operator may not be reached; a host name is checked when it is resolved.
    pub fn refusal(&self, base_url: &str) -> Option<String> {
        self.0.egress.check_url(base_url).err().map(|error| error.to_string())
    }

    /// The client for requests with this access.
    pub(super) fn client(&self, access: &ApiAccess) -> Result<&reqwest::Client, ModelFailure> {
        let ModelHttpInner { connect, egress, plain, local, guarded } = &*self.0;
        let client = match (access.is_guarded, is_local(&access.base_url)) {
            (true, _) => {
                if let Some(refusal) = self.refusal(&access.base_url) {
                    return Err(ModelFailure::new(ModelFailureKind::Refused, refusal));
                }
                let resolver = || EgressResolver(Arc::clone(egress));
                guarded.get_or_init(|| build(builder(*connect).dns_resolver(resolver()).no_proxy()))
            }
            (false, true) => local.get_or_init(|| build(builder(*connect).no_proxy())),
            (false, false) => plain.get_or_init(|| build(builder(*connect))),
        };
        let cannot = |error: &String| {
            ModelFailure::new(ModelFailureKind::Refused, format!("cannot create an HTTP client: {error}"))
        };
        client.as_ref().map_err(cannot)
    }
}

fn builder(connect: Duration) -> reqwest::ClientBuilder {
    // Fails only if a provider is already installed, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .connect_timeout(connect)
        // A redirect could send the key to another host.
        .redirect(Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, String> {
    builder.build().map_err(|error| error.to_string())
}
