//! Opens the store for commands that work on it directly, possibly while a server is running.

use super::DataArgs;
use crate::{config::AppConfig, data_folder, serve::store_config};
use store::{Store, StoreAccess};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub async fn open_store_at(data: &DataArgs) -> anyhow::Result<Store> {
    open_store(&AppConfig::load(&data.flags())?).await
}

pub async fn open_store(config: &AppConfig) -> anyhow::Result<Store> {
    data_folder::prepare(config)?;
    // These commands need no background tasks.
    Ok(Store::open(&store_config(config)?, StoreAccess::Tool, &mut JoinSet::new(), &CancellationToken::new()).await?)
}
