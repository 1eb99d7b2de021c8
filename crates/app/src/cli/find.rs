//! Finds what a command names: by its id, the beginning or the end of its id, or its name. The end of an id is what lists show,
//! because ids of the same time begin alike.

use super::exit::UsageError;
use uuid::Uuid;

/// Fewer digits of an id fit too many.
const MIN_DIGITS: usize = 4;
const SHORT_ID: usize = 8;
/// Names that an error lists.
const MAX_LISTED: usize = 10;

/// Something with an id and, perhaps, a name.
pub trait Findable {
    fn uuid(&self) -> Uuid;
    fn name(&self) -> &str;
}

/// The end of an id, as lists show it.
pub fn short_id(id: Uuid) -> String {
    let digits = id.simple().to_string();
    digits[digits.len() - SHORT_ID..].to_owned()
}

/// Finds the one that `wanted` names. `kind` is what they are called, in the singular.
pub fn find<'a, T: Findable>(kind: &str, all: &'a [T], wanted: &str) -> anyhow::Result<&'a T> {
    let digits = wanted.replace('-', "").to_lowercase();
    let is_part = digits.len() >= MIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_part = |item: &T| {
        let id = item.uuid().simple().to_string();
        is_part && (id.starts_with(&digits) || id.ends_with(&digits))
    };
    let lower = wanted.to_lowercase();
    let fits: [&dyn Fn(&T) -> bool; 3] =
        [&|item: &T| item.name() == wanted, &|item: &T| item.name().to_lowercase() == lower, &has_part];
    for fit in fits {
        match all.iter().filter(|item| fit(item)).collect::<Vec<_>>()[..] {
            [] => {}
            [one] => return Ok(one),
            ref several => {
                let listed = list(several.iter().copied());
                return Err(UsageError(format!("{wanted:?} fits several: {listed}; use an id")).into());
            }
        }
    }
    match all.is_empty() {
        true => anyhow::bail!("there is no {kind} {wanted:?}; there is none at all"),
        false => anyhow::bail!("there is no {kind} {wanted:?}; there are: {}", list(all.iter())),
    }
}

fn list<'a, T: Findable + 'a>(items: impl Iterator<Item = &'a T>) -> String {
    let mut shown: Vec<String> = items
        .take(MAX_LISTED + 1)
        .map(|item| match item.name() {
            "" => short_id(item.uuid()),
            name => format!("{name} ({})", short_id(item.uuid())),
        })
        .collect();
    if shown.len() > MAX_LISTED {
        shown.truncate(MAX_LISTED);
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Findable, find, short_id};
    use uuid::Uuid;

    struct Thing(Uuid, &'static str);

    impl Findable for Thing {
        fn uuid(&self) -> Uuid {
            self.0
        }
        fn name(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn a_thing_is_found_by_name_id_or_a_part_of_its_id() {
        let things = [
            Thing(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_aaaa), "Ada"),
            Thing(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_bbbb), "Bob"),
            Thing(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_00cc_bbbb), "bob"),
            Thing(Uuid::from_u128(0x0191_0000_0000_7000_8000_0000_0000_dddd), "beef"),
        ];
        for (wanted, index) in [
            ("Ada", 0),
            ("ADA", 0),
            ("bob", 2),
            ("aaaa", 0),
            ("0000AAAA", 0),
            ("ccbbbb", 2),
            ("0191", 3),
            ("beef", 3),
            ("01900000-0000-7000-8000-00000000bbbb", 1),
        ] {
            assert_eq!(find("thing", &things, wanted).unwrap().0, things[index].0, "{wanted}");
        }
        for (wanted, said) in [
            ("BOB", "fits several: Bob (0000bbbb), bob (00ccbbbb)"),
            ("bbbb", "fits several"),
            ("aaa", "there is no thing \"aaa\"; there are: Ada (0000aaaa)"),
        ] {
            let error = find("thing", &things, wanted).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(find::<Thing>("thing", &[], "x").is_err());
        assert_eq!(short_id(things[2].0), "00ccbbbb");
    }
}
