//! The settings of providers in a workspace.

use crate::scene::{attempt, by, me, stranger};
use domain::provider_settings::{ModelLimits, ProviderSettings};
use std::fs;
use store::{MAX_PROVIDER_SETTINGS, SettingsWrite, Store, StoreError};
use testkit::{database::TestDatabase, database_dump::DatabaseDump};

contract! {
    one thread:
        settings_read_back_as_stored,
        invariant_15_owner_settings_of_others_are_unknown,
        invariant_07_idempotent_settings_are_stored_once_per_key,
        l8_settings_are_limited_per_workspace,
        h3_a_key_is_stored_encrypted_and_rotated;
}

const KEY: &str = "supersecretqx";

fn settings(key: &str) -> ProviderSettings {
    ProviderSettings {
        is_endpoint: true,
        label: Some("ö 🎭".into()),
        base_url: Some("https://x.example/v1".into()),
        key: Some(key.into()),
        default_model: Some("m".into()),
        limits: ModelLimits { context_window: Some(9000), max_output_tokens: None },
    }
}

async fn put(store: &Store, name: &str, settings: &ProviderSettings, write: SettingsWrite) -> Result<(), StoreError> {
    store.put_provider_settings(&by(&me()), name, settings, write, None).await
}

async fn settings_read_back_as_stored(database: TestDatabase) {
    let store = database.open().await;
    assert!(store.provider_settings(&me()).await.unwrap().settings.is_empty());
    put(&store, "router", &settings("one"), SettingsWrite::Create).await.unwrap();
    let taken = put(&store, "router", &settings("two"), SettingsWrite::Create).await;
    assert!(matches!(taken, Err(StoreError::ProviderExists(name)) if name == "router"));
    put(&store, "router", &settings("two"), SettingsWrite::Replace).await.unwrap();
    put(&store, "openai", &ProviderSettings::default(), SettingsWrite::Replace).await.unwrap();
    let all = store.provider_settings(&me()).await.unwrap();
    assert_eq!(all.get("router"), Some(&settings("two")));
    assert_eq!(all.get("openai"), Some(&ProviderSettings::default()));
    assert!(all.is_operators && all.unreadable.is_empty() && all.settings.len() == 2);
    store.delete_provider_settings(&by(&me()), "router", None).await.unwrap();
    let again = store.delete_provider_settings(&by(&me()), "router", None).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
    assert_eq!(store.provider_settings(&me()).await.unwrap().get("router"), None);
}

async fn invariant_15_owner_settings_of_others_are_unknown(database: TestDatabase) {
    let store = database.open().await;
    put(&store, "router", &settings(KEY), SettingsWrite::Create).await.unwrap();
    let theirs = store.provider_settings(&stranger()).await.unwrap();
    assert!(theirs.settings.is_empty() && !theirs.is_operators);
    let refused = store.delete_provider_settings(&by(&stranger()), "router", None).await;
    assert!(matches!(refused, Err(StoreError::NotFound)));
    let own = SettingsWrite::Create;
    store.put_provider_settings(&by(&stranger()), "router", &settings("theirs"), own, None).await.unwrap();
    assert_eq!(store.provider_settings(&me()).await.unwrap().get("router"), Some(&settings(KEY)));
}

async fn invariant_07_idempotent_settings_are_stored_once_per_key(database: TestDatabase) {
    let store = database.open().await;
    let (actor, once) = (by(&me()), attempt("once", 1));
    let put = |key: &'static str| {
        let (store, actor, once) = (&store, &actor, &once);
        async move { store.put_provider_settings(actor, "openai", &settings(key), SettingsWrite::Replace, Some(once)).await }
    };
    put("first").await.unwrap();
    assert!(matches!(put("second").await, Err(StoreError::KeyUsed)));
    assert_eq!(store.provider_settings(&me()).await.unwrap().get("openai"), Some(&settings("first")));
}

async fn l8_settings_are_limited_per_workspace(database: TestDatabase) {
    let store = database.open().await;
    for n in 0..MAX_PROVIDER_SETTINGS {
        put(&store, &format!("p{n}"), &settings(KEY), SettingsWrite::Create).await.unwrap();
    }
    let refused = put(&store, "more", &settings(KEY), SettingsWrite::Create).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))));
    put(&store, "p0", &settings("changed"), SettingsWrite::Replace).await.unwrap();
    let own = SettingsWrite::Create;
    store.put_provider_settings(&by(&stranger()), "more", &settings(KEY), own, None).await.unwrap();
}

async fn h3_a_key_is_stored_encrypted_and_rotated(database: TestDatabase) {
    let store = database.open().await;
    put(&store, "openai", &settings(KEY), SettingsWrite::Replace).await.unwrap();
    assert!(DatabaseDump::read(&database).await.tables_with(KEY, &[]).is_empty());
    store.shut_down().await;
    let file = database.folder().join("secrets.key");
    let old = fs::read_to_string(&file).unwrap();
    store::add_secrets_key(&file).unwrap();
    database.open().await.shut_down().await;
    // It is readable without the old key.
    let both = fs::read_to_string(&file).unwrap();
    fs::write(&file, both.strip_suffix(&old).unwrap()).unwrap();
    let store = database.open().await;
    assert_eq!(store.provider_settings(&me()).await.unwrap().get("openai"), Some(&settings(KEY)));
    store.shut_down().await;
    // A lost key is reported, and nothing else is used instead.
    fs::write(&file, old).unwrap();
    let store = database.open().await;
    let all = store.provider_settings(&me()).await.unwrap();
    assert!(all.settings.is_empty() && all.unreadable["openai"].contains("secrets.key"), "{all:?}");
    store.shut_down().await;
}
