//! Reads one value at a time from the merged layers and validates it. An error has the key, the value, its origin and
//! what is allowed.

use super::{AppConfigError, database};
use config::{Value, ValueKind};
use std::{ops::RangeInclusive, time::Duration};

pub struct ConfigReader {
    merged: config::Config,
}

impl ConfigReader {
    pub fn new(merged: config::Config) -> Self {
        Self { merged }
    }

    pub fn text(&self, key: &str, allowed: &str) -> Result<String, AppConfigError> {
        match self.value(key).map(|value| &value.kind) {
            Some(ValueKind::String(text)) => Ok(text.clone()),
            _ => Err(self.refused(key, allowed)),
        }
    }

    /// Text that `parse` accepts.
    pub fn parsed<T>(
        &self,
        key: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, AppConfigError> {
        let text = self.text(key, allowed)?;
        parse(&text).ok_or_else(|| self.refused(key, allowed))
    }

    pub fn list<T>(
        &self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, AppConfigError> {
        let Some(ValueKind::Array(items)) = self.value(key).map(|value| &value.kind) else {
            return Err(self.refused(key, allowed));
        };
        let item = |item: &Value| match &item.kind {
            ValueKind::String(text) => parse(text),
            _ => None,
        };
        items.iter().map(item).collect::<Option<Vec<T>>>().ok_or_else(|| self.refused(key, allowed))
    }

    /// A list that is also checked as a whole.
    pub fn checked_list<T>(
        &self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
        is_right: impl FnOnce(&[T]) -> bool,
    ) -> Result<Vec<T>, AppConfigError> {
        let list = self.list(key, allowed, parse)?;
        if is_right(&list) { Ok(list) } else { Err(self.refused(key, allowed)) }
    }

    pub fn boolean(&self, key: &str) -> Result<bool, AppConfigError> {
        match self.value(key).map(|value| &value.kind) {
            Some(ValueKind::Boolean(yes)) => Ok(*yes),
            Some(ValueKind::String(text)) if text.trim() == "true" => Ok(true),
            Some(ValueKind::String(text)) if text.trim() == "false" => Ok(false),
            _ => Err(self.refused(key, "true or false")),
        }
    }

    pub fn integer<T: TryFrom<u64>>(&self, key: &str, range: RangeInclusive<u64>) -> Result<T, AppConfigError> {
        let number = match self.value(key).map(|value| &value.kind) {
            Some(ValueKind::I64(number)) => u64::try_from(*number).ok(),
            Some(ValueKind::U64(number)) => Some(*number),
            // Environment variables are always text.
            Some(ValueKind::String(text)) => text.trim().parse().ok(),
            _ => None,
        };
        let fits = number.filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
        fits.ok_or_else(|| self.refused(key, &format!("a whole number from {} to {}", range.start(), range.end())))
    }

    pub fn seconds(&self, key: &str, range: RangeInclusive<u64>) -> Result<Duration, AppConfigError> {
        self.integer(key, range).map(Duration::from_secs)
    }

    fn refused(&self, key: &str, allowed: &str) -> AppConfigError {
        let value = self.value(key);
        let given = match value {
            None => "nothing".to_owned(),
            Some(Value { kind: ValueKind::String(text), .. }) if key == "store.database" => {
                format!("{:?}", database::redacted(text))
            }
            Some(value) => shown(&value.kind),
        };
        let origin = value.and_then(Value::origin).unwrap_or("built in").to_owned();
        AppConfigError::Value { key: key.to_owned(), given, origin, allowed: allowed.to_owned() }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let (section, name) = key.split_once('.')?;
        let ValueKind::Table(sections) = &self.merged.cache.kind else { return None };
        let ValueKind::Table(keys) = &sections.get(section)?.kind else { return None };
        keys.get(name)
    }
}

fn shown(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Nil => "nothing".to_owned(),
        ValueKind::String(text) => format!("{text:?}"),
        ValueKind::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(&item.kind)).collect();
            format!("[{}]", items.join(", "))
        }
        ValueKind::Table(_) => "a table".to_owned(),
        other => other.to_string(),
    }
}
