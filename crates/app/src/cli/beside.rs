//! Commands that work on the store itself, beside a server that may be running.

use super::Place;
use crate::{config::Config, serve::store_config};
use store::{Access, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub async fn open_beside(place: &Place) -> anyhow::Result<Store> {
    open(&Config::load(&place.flags())?).await
}

pub async fn open(config: &Config) -> anyhow::Result<Store> {
    // Beside a server there is nothing to run in the background.
    Ok(Store::open(&store_config(config)?, Access::Beside, &mut JoinSet::new(), &CancellationToken::new()).await?)
}
