//! Reads the parts of a Markdown file that the rules need: code spans, fenced lines, link targets and table rows.

pub struct MarkdownLine<'a> {
    pub number: usize,
    pub text: &'a str,
    /// Inside a block of code.
    pub is_fenced: bool,
}

pub fn lines(text: &str) -> impl Iterator<Item = MarkdownLine<'_>> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, text)| {
        let is_fence = text.trim_start().starts_with("```") || text.trim_start().starts_with("~~~");
        is_fenced ^= is_fence;
        (!is_fence).then_some(MarkdownLine { number: index + 1, text, is_fenced })
    })
}

pub fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of `[text](target)` and `[name]: target`, as written, without a title.
pub fn link_targets(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut targets = Vec::new();
    for rest in prose.split("](").skip(1) {
        targets.extend(rest.split([')', ' ']).next().map(without_brackets));
    }
    if let Some((_, rest)) = prose.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        targets.extend(rest.split_whitespace().next().map(without_brackets));
    }
    targets
}

/// The cells of a row `| a | b |`. The line between the head of a table and its rows has none.
pub fn table_row(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let is_separator = cells.iter().all(|cell| !cell.is_empty() && cell.trim_matches(['-', ':']).is_empty());
    (!is_separator).then_some(cells)
}

fn without_brackets(target: &str) -> String {
    target.trim_start_matches('<').trim_end_matches('>').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_prose_are_separated() {
        let text = "a `one` and `two`\n```\n[not](a-link)\n```\nafter\n";
        let found: Vec<(usize, bool)> = lines(text).map(|line| (line.number, line.is_fenced)).collect();
        assert_eq!(found, [(1, false), (3, true), (5, false)]);
        assert_eq!(code_spans("a `one` and `two`").collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn rows_of_tables_are_read() {
        assert_eq!(table_row("| a | `b c` |"), Some(vec!["a", "`b c`"]));
        assert_eq!(table_row("|---|:-:|"), None);
        assert_eq!(table_row("a | b"), None);
    }

    #[test]
    fn both_kinds_of_links_are_found() {
        let line = "see [the `map`](docs/map.md#top \"Map\"), [b](<c.md>) but not `[code](span.md)`";
        assert_eq!(link_targets(line), ["docs/map.md#top", "c.md"]);
        assert_eq!(link_targets("[guide]: docs/guide.md"), ["docs/guide.md"]);
    }
}
