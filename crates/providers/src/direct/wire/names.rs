//! Tool names that every API takes, and the way back. Pure.
//!
//! Both vendors want 1 to 64 of `a-z A-Z 0-9 _ -`; MCP servers name their tools as they like.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

const MAX_BYTES: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Names {
    fitted: BTreeMap<String, String>,
    meant: BTreeMap<String, String>,
}

impl Names {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        let (fit, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| fits(name));
        // Those that fit keep their names, whoever comes first.
        fit.into_iter().for_each(|name| all.add(name, name.to_owned()));
        for name in others {
            let mut salt = 0_u32;
            let mut made = made(name, salt);
            while all.meant.get(&made).is_some_and(|meant| meant != name) {
                salt += 1;
                made = self::made(name, salt);
            }
            all.add(name, made);
        }
        all
    }

    fn add(&mut self, name: &str, fitted: String) {
        self.meant.insert(fitted.clone(), name.to_owned());
        self.fitted.insert(name.to_owned(), fitted);
    }

    /// What the API is told. A name of an earlier turn need not be among those of this one.
    pub fn fitted(&self, name: &str) -> String {
        match self.fitted.get(name) {
            Some(fitted) => fitted.clone(),
            None if fits(name) => name.to_owned(),
            None => made(name, 0),
        }
    }

    /// What the model means; as it said it when there is no such tool.
    pub fn meant(&self, fitted: &str) -> String {
        self.meant.get(fitted).cloned().unwrap_or_else(|| fitted.to_owned())
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn fits(name: &str) -> bool {
    (1..=MAX_BYTES).contains(&name.len()) && name.chars().all(is_letter)
}

/// As much of the name as there is room for, and a mark that tells it from others that look alike then.
fn made(name: &str, salt: u32) -> String {
    let mut hasher = DefaultHasher::new();
    (name, salt).hash(&mut hasher);
    let mark = format!("_{:08x}", hasher.finish() & 0xffff_ffff);
    let mut made: String = name.chars().map(|c| if is_letter(c) { c } else { '_' }).collect();
    made.truncate(MAX_BYTES - mark.len());
    made + &mark
}

#[cfg(test)]
mod tests {
    use super::{Names, fits};

    #[test]
    fn every_name_fits_and_finds_its_way_back() {
        let long = format!("mcp__server__{}", "x".repeat(100));
        let longer = format!("{long}y");
        let all = ["memory", "mcp__a__b", "mcp__a__b.c", "mcp__a__b/c", "mcp__ä__ö", "", &long, &longer];
        let names = Names::new(all);
        let mut fitted: Vec<String> = all.iter().map(|name| names.fitted(name)).collect();
        for (name, fitted) in all.iter().zip(&fitted) {
            assert!(fits(fitted), "{name} → {fitted}");
            assert_eq!(names.meant(fitted), *name);
        }
        assert_eq!(names.fitted("memory"), "memory");
        fitted.sort();
        fitted.dedup();
        assert_eq!(fitted.len(), all.len());
        assert_eq!(names.meant("never heard of"), "never heard of");
        assert!(fits(&names.fitted("a tool of yesterday")));
    }
}
