//! Which providers this server has, by name.

use crate::Provider;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Clone, Default)]
pub struct Registry(Arc<BTreeMap<String, Arc<dyn Provider>>>);

impl Registry {
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        Self(Arc::new(providers.into_iter().map(|provider| (provider.name().to_owned(), provider)).collect()))
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.0.get(name).cloned()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.0.values()
    }

    /// For messages: `scripted, claude_code`.
    pub fn names(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
