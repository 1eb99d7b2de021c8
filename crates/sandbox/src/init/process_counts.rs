//! How many processes each command has.

use std::{collections::BTreeMap, fs};

/// Each process that we can see, and its parent.
pub fn parents() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |process: i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        Some((process, fields.split_whitespace().nth(1)?.parse().ok()?))
    };
    processes.filter_map(parent).collect()
}

/// The number of descendants of each shepherd, by the id of its command.
pub fn beneath(shepherds: &BTreeMap<i32, u64>, parents: &BTreeMap<i32, i32>) -> BTreeMap<u64, u32> {
    let command_of = |process: &i32| {
        let mut above = parents.get(process)?;
        // Read one after the other, so the parents may form a circle; no chain is longer than this.
        for _ in 0..parents.len() {
            match shepherds.get(above) {
                Some(id) => return Some(*id),
                None => above = parents.get(above)?,
            }
        }
        None
    };
    let mut counts = BTreeMap::new();
    for id in parents.keys().filter_map(command_of) {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::beneath;

    #[test]
    fn descendants_are_counted_without_the_shepherd() {
        let parents = [(1, 0), (10, 1), (11, 10), (12, 11), (13, 10), (20, 1), (21, 20), (30, 1)].into();
        assert_eq!(beneath(&[(10, 7), (20, 8)].into(), &parents), [(7, 3), (8, 1)].into());
        assert_eq!(beneath(&[(30, 9)].into(), &parents), [].into());
    }

    #[test]
    fn a_circle_of_reused_numbers_ends() {
        assert_eq!(beneath(&[(10, 7)].into(), &[(2, 3), (3, 2)].into()), [].into());
    }
}
