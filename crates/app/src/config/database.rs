//! The configured database. The variant holds its path or URL, so that no other code parses the scheme.

use super::secret::PLACEHOLDER;
use reqwest::Url;
use std::{fmt, path::PathBuf};

/// The default SQLite file in the data directory.
const FILE_NAME: &str = "greenroom.db";

pub const ALLOWED: &str = "empty (an SQLite file in the data directory), sqlite://PATH or \
                           postgres://USER:PASSWORD@HOST:PORT/NAME";

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatabaseSetting {
    Sqlite { path: PathBuf },
    Postgres { url: DatabaseUrl },
}

impl DatabaseSetting {
    /// Returns `None` if the text has none of the [`ALLOWED`] forms.
    pub fn parse(text: &str, data_dir: &std::path::Path) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Sqlite { path: data_dir.join(FILE_NAME) });
        }
        if let Some(path) = text.strip_prefix("sqlite://") {
            let plain = !path.is_empty() && !path.contains(['?', '#']);
            return plain.then(|| Self::Sqlite { path: PathBuf::from(path) });
        }
        let url = Url::parse(text).ok()?;
        let postgres = matches!(url.scheme(), "postgres" | "postgresql");
        // The host may also be in the query: `?host=/var/run/postgresql` is a socket directory.
        let host = url.host_str().is_some_and(|host| !host.is_empty());
        let named = host || url.query_pairs().any(|(key, _)| key == "host");
        (postgres && named).then(|| Self::Postgres { url: DatabaseUrl(text.to_owned()) })
    }
}

impl fmt::Display for DatabaseSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite://{}", path.display()),
            Self::Postgres { url } => url.fmt(f),
        }
    }
}

/// A connection URL. `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.0))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A database setting with its secrets redacted; all of it if it cannot be parsed.
pub fn redacted(text: &str) -> String {
    if text.is_empty() || text.starts_with("sqlite://") {
        return text.to_owned();
    }
    let Ok(mut url) = Url::parse(text) else {
        return PLACEHOLDER.to_owned();
    };
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return PLACEHOLDER.to_owned();
    }
    if url.query().is_some() {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut query = url.query_pairs_mut();
        query.clear();
        for (key, value) in &pairs {
            let secret = key.to_ascii_lowercase().contains("password");
            query.append_pair(key, if secret { "***" } else { value });
        }
    }
    // In a URL such as `mailto:…` a password cannot be located, so all of it is redacted.
    if url.cannot_be_a_base() { PLACEHOLDER.to_owned() } else { url.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{DatabaseSetting, redacted};
    use std::path::{Path, PathBuf};

    fn parse(text: &str) -> Option<DatabaseSetting> {
        DatabaseSetting::parse(text, Path::new("data"))
    }

    #[test]
    fn each_form_is_parsed_into_its_variant() {
        assert_eq!(parse(""), Some(DatabaseSetting::Sqlite { path: PathBuf::from("data/greenroom.db") }));
        assert_eq!(parse("sqlite:///var/g.db"), Some(DatabaseSetting::Sqlite { path: PathBuf::from("/var/g.db") }));
        assert_eq!(parse("sqlite://g.db"), Some(DatabaseSetting::Sqlite { path: PathBuf::from("g.db") }));
        let Some(DatabaseSetting::Postgres { url }) = parse("postgresql://u:pw@h:5433/n?sslmode=require") else {
            panic!("a PostgreSQL URL is accepted");
        };
        assert_eq!(url.expose(), "postgresql://u:pw@h:5433/n?sslmode=require");
        assert!(parse("postgres:///n?host=/run/postgresql").is_some());
        for bad in ["g.db", "mysql://h/n", "sqlite://", "sqlite://a?mode=ro", "postgres://", "postgres", "sqlite:g.db"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn invariant_17_a_password_is_not_shown() {
        let shown = format!("{:?}", parse("postgres://me:hunter2@db/n?password=hunter2&sslmode=require").unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("me:***@db") && shown.contains("sslmode=require"), "{shown}");
        for odd in
            ["postgres//me:hunter2@db", "me:hunter2@db", "hunter2", "postgres://me:hunter2@", "a://hunter2:hunter2@x y"]
        {
            assert!(!redacted(odd).contains("hunter2"), "{odd} → {}", redacted(odd));
        }
    }
}
