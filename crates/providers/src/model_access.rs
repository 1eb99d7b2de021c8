//! How providers describe their access to model APIs: which ones, with whose key, and which models they offer.

use crate::direct::{AccessSource, ListedModel};
use std::{future::Future, pin::Pin};

/// A model API that a provider calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelApiUse {
    /// The provider under which a workspace sets the key.
    pub settings: String,
    /// Whether the server's environment has a key for it.
    pub has_server_key: bool,
    /// The variables that can hold the server's key, for people.
    pub key_variables: String,
}

/// The address and the key of a provider's calls, without secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAccess {
    pub base_url: String,
    pub has_key: bool,
    pub source: Option<AccessSource>,
}

/// Why the models of an API cannot be listed. The message is for people and has no secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelListError {
    /// The key is missing or rejected.
    #[error("{0}")]
    Key(String),
    #[error("{0}")]
    Unreachable(String),
    /// The address does not list models, or may not be called.
    #[error("{0}")]
    Other(String),
}

pub type ListModelsFuture = Pin<Box<dyn Future<Output = Result<Vec<ListedModel>, ModelListError>> + Send>>;

pub(crate) fn cannot_list(provider: &str) -> ListModelsFuture {
    let error = ModelListError::Other(format!("{provider} does not list its models"));
    Box::pin(async move { Err(error) })
}
