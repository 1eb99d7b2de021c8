//! The sources of values: embedded defaults, file, environment, flags. Each value keeps its origin, so that an error
//! can say what to change. `default.toml` defines which keys exist.

use super::{AppConfigError, ConfigFlags};
use config::{File, FileFormat, Map, Source, Value, ValueKind};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

pub const DEFAULTS: &str = include_str!("../../default.toml");
pub const FILE_NAME: &str = "greenroom.toml";
const PREFIX: &str = "GREENROOM_";
/// Maximum size of a configuration file, so that a wrong file is not read into memory.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Every `section.key` with its default.
pub type KnownKeys = BTreeMap<String, ValueKind>;

/// The values of one source. Later sources override earlier ones, key by key.
#[derive(Clone, Default)]
pub struct ConfigLayer {
    entries: BTreeMap<String, (ValueKind, String)>,
}

impl ConfigLayer {
    pub fn get(&self, key: &str) -> Option<&ValueKind> {
        self.entries.get(key).map(|(kind, _)| kind)
    }

    fn set(&mut self, key: &str, kind: impl Into<ValueKind>, origin: impl Into<String>) {
        self.entries.insert(key.to_owned(), (kind.into(), origin.into()));
    }
}

/// Shows only names, because values may be secret.
impl fmt::Debug for ConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl Source for ConfigLayer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        let value = |(kind, origin): &(ValueKind, String)| Value::new(Some(origin), kind.clone());
        Ok(self.entries.iter().map(|(key, entry)| (key.clone(), value(entry))).collect())
    }
}

pub fn defaults() -> Result<(KnownKeys, ConfigLayer), AppConfigError> {
    let path = Path::new("default.toml");
    let mut layer = ConfigLayer::default();
    for (key, kind) in leaves(DEFAULTS, path)? {
        layer.set(&key, kind, "built in");
    }
    let known = layer.entries.iter().map(|(key, (kind, _))| (key.clone(), kind.clone())).collect();
    Ok((known, layer))
}

/// The configuration file, if any: the named one, else the first that exists.
pub fn find_file(named: Option<&Path>, data_dir: &Path, working_dir: &Path) -> Result<Option<PathBuf>, AppConfigError> {
    if let Some(path) = named {
        return Ok(Some(path.to_owned()));
    }
    for path in [data_dir.join(FILE_NAME), working_dir.join(FILE_NAME)] {
        match path.try_exists() {
            Ok(true) => return Ok(Some(path)),
            Ok(false) => {}
            Err(source) => return Err(AppConfigError::Unreadable { file: path, source }),
        }
    }
    Ok(None)
}

pub fn from_file(path: &Path, known: &KnownKeys) -> Result<ConfigLayer, AppConfigError> {
    let unreadable = |source| AppConfigError::Unreadable { file: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes"))));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let mut layer = ConfigLayer::default();
    let origin = path.display().to_string();
    for (key, kind) in leaves(&text, path)? {
        if !known.contains_key(&key) {
            return Err(unknown(&key, &origin, known));
        }
        layer.set(&key, kind, &origin);
    }
    Ok(layer)
}

/// Only names with a double underscore are settings: `GREENROOM_TOKEN` and `GREENROOM_SERVER` are for the client.
pub fn from_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    known: &KnownKeys,
) -> Result<ConfigLayer, AppConfigError> {
    let mut layer = ConfigLayer::default();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let Some((section, key)) = name[PREFIX.len()..].split_once("__") else { continue };
        let key = format!("{section}.{key}").to_ascii_lowercase();
        let Some(default) = known.get(&key) else {
            return Err(unknown(&key, &format!("the environment variable {name}"), known));
        };
        let Some(value) = value.to_str() else {
            let (given, allowed) = ("bytes that are not UTF-8".to_owned(), "text".to_owned());
            return Err(AppConfigError::Value { key, given, origin: name.to_owned(), allowed });
        };
        let kind = match default {
            ValueKind::Array(_) => {
                let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
                ValueKind::Array(items.map(|item| Value::new(None, item)).collect())
            }
            _ => ValueKind::from(value),
        };
        layer.set(&key, kind, name);
    }
    Ok(layer)
}

pub fn from_flags(flags: &ConfigFlags) -> ConfigLayer {
    let mut layer = ConfigLayer::default();
    if let Some(listen) = &flags.listen {
        layer.set("server.listen", listen.as_str(), "--listen");
    }
    if let Some(role) = &flags.role {
        layer.set("server.role", role.as_str(), "--role");
    }
    if let Some(path) = &flags.data_dir {
        layer.set("store.data_dir", path.as_str(), "--data-dir");
    }
    if let Some(url) = &flags.database {
        layer.set("store.database", url.expose(), "--database");
    }
    if let Some(path) = &flags.tls_certificate {
        layer.set("tls.certificate", path.as_str(), "--tls-certificate");
    }
    if let Some(path) = &flags.tls_key {
        layer.set("tls.key", path.as_str(), "--tls-key");
    }
    if flags.tls_self_signed {
        layer.set("tls.self_signed", true, "--tls-self-signed");
    }
    if flags.behind_tls_proxy {
        layer.set("server.behind_tls_proxy", true, "--behind-tls-proxy");
    }
    layer
}

/// Every `section.key` of a TOML text.
fn leaves(text: &str, path: &Path) -> Result<Vec<(String, ValueKind)>, AppConfigError> {
    let syntax = |detail| AppConfigError::Syntax { file: path.to_owned(), detail };
    let sections =
        File::from_str(text, FileFormat::Toml).collect().map_err(|error| syntax(parse_error_summary(&error)))?;
    let mut leaves = Vec::new();
    for (section, value) in sections {
        let ValueKind::Table(keys) = value.kind else {
            return Err(syntax(format!("{section} is not inside a [section]")));
        };
        leaves.extend(keys.into_iter().map(|(key, value)| (format!("{section}.{key}"), value.kind)));
    }
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(leaves)
}

/// The first and last line of a parse error, without the quoted source line, which may contain a password.
fn parse_error_summary(error: &config::ConfigError) -> String {
    let cause = match error {
        config::ConfigError::FileParse { cause, .. } => cause.to_string(),
        other => other.to_string(),
    };
    let lines: Vec<&str> = cause.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => "it cannot be parsed".to_owned(),
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first}: {last}"),
    }
}

fn unknown(key: &str, origin: &str, known: &KnownKeys) -> AppConfigError {
    let section = key.split('.').next().unwrap_or_default();
    let siblings: Vec<&str> =
        known.keys().filter_map(|k| k.split_once('.').filter(|(s, _)| *s == section).map(|(_, name)| name)).collect();
    let mut sections: Vec<&str> = known.keys().filter_map(|k| k.split_once('.').map(|(s, _)| s)).collect();
    sections.dedup();
    let allowed = if siblings.is_empty() {
        format!("the sections are {}", sections.join(", "))
    } else {
        format!("the keys of [{section}] are {}", siblings.join(", "))
    };
    AppConfigError::Unknown { key: key.to_owned(), origin: origin.to_owned(), allowed }
}
