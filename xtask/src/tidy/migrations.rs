//! Both databases have the same numbered migrations.

use std::collections::BTreeSet;

use super::tree::{SourceTree, TidyFinding};

const FOLDERS: [&str; 2] = ["crates/store/migrations/sqlite", "crates/store/migrations/postgres"];

pub fn come_in_pairs(tree: &SourceTree) -> Vec<TidyFinding> {
    let [sqlite, postgres] = FOLDERS.map(|folder| names(tree, folder));
    let mut findings = Vec::new();
    for (folder, own, other_folder, other) in
        [(FOLDERS[0], &sqlite, FOLDERS[1], &postgres), (FOLDERS[1], &postgres, FOLDERS[0], &sqlite)]
    {
        for name in own.difference(other) {
            let advice = format!("has no counterpart; add {other_folder}/{name}");
            findings.push(TidyFinding::on(&format!("{folder}/{name}"), advice));
        }
        for (index, name) in own.iter().enumerate() {
            let expected = format!("{:04}_", index + 1);
            if !name.starts_with(&expected) || !name.ends_with(".sql") {
                let advice = format!("numbers must have no gaps; name it {expected}<what it does>.sql");
                findings.push(TidyFinding::on(&format!("{folder}/{name}"), advice));
            }
        }
    }
    findings
}

fn names<'a>(tree: &'a SourceTree, folder: &str) -> BTreeSet<&'a str> {
    tree.paths().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sqlite: &[&str], postgres: &[&str]) -> usize {
        let paths: Vec<String> = [(FOLDERS[0], sqlite), (FOLDERS[1], postgres)]
            .iter()
            .flat_map(|(folder, names)| names.iter().map(move |name| format!("{folder}/{name}")))
            .collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        come_in_pairs(&SourceTree::of(&files)).len()
    }

    #[test]
    fn a_migration_without_a_counterpart_is_found() {
        assert_eq!(check(&["0001_start.sql", "0002_queue.sql"], &["0001_start.sql", "0002_queue.sql"]), 0);
        assert_eq!(check(&["0001_start.sql", "0002_queue.sql"], &["0001_start.sql"]), 1);
        assert_eq!(check(&["0001_start.sql"], &["0001_begin.sql"]), 2);
    }

    #[test]
    fn a_gap_in_the_numbers_is_found() {
        assert_eq!(check(&["0001_start.sql", "0003_queue.sql"], &["0001_start.sql", "0003_queue.sql"]), 2);
        assert_eq!(check(&["start.sql"], &["start.sql"]), 2);
    }
}
