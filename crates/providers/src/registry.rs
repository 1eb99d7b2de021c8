//! Which providers this server has, by name.

use crate::{Provider, host_tools::pass::Passes};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Clone, Default)]
pub struct Registry {
    providers: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    passes: Passes,
}

impl Registry {
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        let providers = providers.into_iter().map(|provider| (provider.name().to_owned(), provider));
        Self { providers: Arc::new(providers.collect()), passes: Passes::default() }
    }

    /// Those that its providers give to their agents.
    pub fn with_passes(self, passes: Passes) -> Self {
        Self { passes, ..self }
    }

    pub fn passes(&self) -> &Passes {
        &self.passes
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.providers.get(name).cloned()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.providers.values()
    }

    /// For messages: `scripted, claude_code`.
    pub fn names(&self) -> String {
        self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.providers.keys()).finish()
    }
}
