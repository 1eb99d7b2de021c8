//! Writes the tables into a document: each part has its place there, between two markers. Parts that were not measured
//! keep what they have.

use crate::{scenarios::MeasuredPart, table};
use anyhow::Context as _;
use domain::time::Timestamp;
use std::{fs, path::Path};

/// Writes the parts without failures. `commit` is that of the measured binary.
pub fn write(document: &Path, commit: &str, parts: &[MeasuredPart]) -> anyhow::Result<()> {
    let measured: Vec<&MeasuredPart> = parts.iter().filter(|part| part.failures.is_empty()).collect();
    let names = measured.iter().map(|part| format!("`{}`", part.name)).collect::<Vec<_>>().join(", ");
    let date = Timestamp::now().to_string();
    let date = date.split('T').next().unwrap_or(&date);
    let origin = format!("Commit {commit}, {date}, {}. Measured in one run: {names}.", machine()?);
    let mut text = fs::read_to_string(document).with_context(|| document.display().to_string())?;
    for part in measured {
        let content = format!("{origin}\n\n{}", table::to_markdown(&part.rows));
        text = replace(&text, &part.name, &content).with_context(|| document.display().to_string())?;
    }
    fs::write(document, text).with_context(|| document.display().to_string())
}

fn machine() -> anyhow::Result<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{} cores, Linux {}", std::thread::available_parallelism()?, kernel.trim()))
}

/// Replaces what is between the markers of a part.
fn replace(text: &str, part: &str, content: &str) -> anyhow::Result<String> {
    let [begin, end] = [format!("<!-- bench {part}: begin -->\n"), format!("<!-- bench {part}: end -->")];
    let (before, rest) = text.split_once(&begin).with_context(|| format!("no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no line {end}"))?;
    Ok(format!("{before}{begin}{content}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::replace;

    const TEXT: &str = "# A\n\n<!-- bench path: begin -->\nold\n<!-- bench path: end -->\n\nProse.\n\n\
                        <!-- bench mcp: begin -->\nkept\n<!-- bench mcp: end -->\n";

    #[test]
    fn only_the_named_part_is_replaced() {
        let text = replace(TEXT, "path", "new\nrows").unwrap();
        assert_eq!(text, TEXT.replace("old", "new\nrows"));
        assert_eq!(replace(&text, "path", "old").unwrap(), TEXT, "writing again changes nothing else");
    }

    #[test]
    fn a_missing_marker_is_an_error() {
        assert!(replace(TEXT, "idle", "new").is_err());
        assert!(replace("<!-- bench path: begin -->\nold\n", "path", "new").is_err());
    }

    #[test]
    fn the_document_has_a_place_for_every_part() {
        let document = include_str!("../../../../../docs/benchmarks.md");
        for part in <crate::scenarios::Scenario as clap::ValueEnum>::value_variants() {
            assert!(replace(document, &part.name(), "").is_ok(), "{part:?}");
        }
    }
}
