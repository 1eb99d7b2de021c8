//! Whether comments have examples that are tests. Nextest leaves those out, and without any, `cargo test --doc` would
//! only cost time.

use crate::tidy::SourceTree;

/// Blocks that rustdoc does not run.
const NOT_RUN: &[&str] = &["text", "ignore", "json", "toml", "sh", "sql"];

pub fn exist(tree: &SourceTree) -> bool {
    tree.rust_sources()
        .filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"))
        .any(|(_, text)| in_text(text))
}

fn in_text(text: &str) -> bool {
    let mut is_inside = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            // A block ends with its comment.
            is_inside &= comment.is_some();
            continue;
        };
        is_inside = !is_inside;
        if is_inside && !NOT_RUN.contains(&language.split(',').next().unwrap_or(language)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_that_rustdoc_runs_count() {
        for text in ["/// ```\n/// let a = 1;\n/// ```\n", "//! ```rust,no_run\n//! ```\n", "    /// ```should_panic\n"]
        {
            assert!(in_text(text), "{text}");
        }
        for text in
            ["//! ```text\n//! a → b\n//! ```\nfn f() {}\n", "// ```\n// no doc comment\n", "let a = \"```\";\n"]
        {
            assert!(!in_text(text), "{text}");
        }
        assert!(in_text("/// ```text\n/// a\n/// ```\n///\n/// ```\n/// f();\n/// ```\n"));
    }

    #[test]
    fn only_sources_of_crates_count() {
        let example = "/// ```\n/// f();\n/// ```\n";
        assert!(exist(&SourceTree::of(&[("crates/store/src/lib.rs", example)])));
        assert!(!exist(&SourceTree::of(&[("crates/store/tests/it/main.rs", example), ("xtask/src/main.rs", example)])));
    }
}
