//! Prints rows in columns, with every cell sanitized.

use super::{sanitize, screen::colors_wanted};
use serde_json::Value;
use std::io::{self, IsTerminal as _, Write};

/// Maximum width of a cell; the last column may be wider.
const CELL: usize = 48;
const LAST_CELL: usize = 400;

/// Prints to standard output, with colors if that is a terminal that wants them.
pub fn print_standard(head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let out = io::stdout();
    let colors = out.is_terminal() && colors_wanted();
    print_styled(&mut out.lock(), head, rows, colors)
}

/// Prints objects as JSON, one per line.
pub fn print_json(list: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for object in list.as_array().into_iter().flatten() {
        writeln!(out, "{}", sanitize::json(&object.to_string()))?;
    }
    Ok(())
}

/// A time of the API without its seconds: `2026-11-18 00:52`.
pub fn minute(time: &str) -> String {
    time.chars().take(16).map(|letter| if letter == 'T' { ' ' } else { letter }).collect()
}

pub fn print(out: &mut impl Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    print_styled(out, head, rows, false)
}

fn print_styled(out: &mut impl Write, head: &[&str], rows: &[Vec<String>], colors: bool) -> io::Result<()> {
    let limit = |column: usize| if column + 1 == head.len() { LAST_CELL } else { CELL };
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().enumerate().map(|(column, cell)| sanitize::line(cell, limit(column))).collect())
        .collect();
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([title.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let titles: Vec<String> = head.iter().map(|title| title.to_uppercase()).collect();
    for (index, row) in std::iter::once(&titles).chain(&rows).enumerate() {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        let line = cells.join("  ");
        let line = line.trim_end();
        // The head is bold and the first column, an id, is dim.
        match (colors, index) {
            (false, _) => writeln!(out, "{line}")?,
            (true, 0) => writeln!(out, "\x1b[1m{line}\x1b[0m")?,
            (true, _) => {
                let (id, rest) = cells.split_first().map_or(("", String::new()), |(id, rest)| (id, rest.join("  ")));
                writeln!(out, "\x1b[2m{id}\x1b[0m  {}", rest.trim_end())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn colors_change_no_column() {
        let rows = vec![vec!["1".to_owned(), "one".to_owned()]];
        let (mut plain, mut colored) = (Vec::new(), Vec::new());
        super::print_styled(&mut plain, &["id", "name"], &rows, false).unwrap();
        super::print_styled(&mut colored, &["id", "name"], &rows, true).unwrap();
        let [plain, colored] = [plain, colored].map(|text| String::from_utf8(text).unwrap());
        assert_ne!(plain, colored);
        let without = ["\x1b[1m", "\x1b[2m", "\x1b[0m"].iter().fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(without, plain);
        assert_eq!(super::minute("2026-11-18T00:52:07.123Z"), "2026-11-18 00:52");
    }

    #[test]
    fn columns_are_aligned_and_cells_are_one_line() {
        let rows = vec![vec!["a\nb".to_owned(), "Zoë".to_owned()], vec!["longer".to_owned(), "\u{1b}[2Jx".to_owned()]];
        let mut out = Vec::new();
        super::print(&mut out, &["id", "name"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "ID      NAME\na b     Zoë\nlonger  ␛[2Jx\n");
    }
}
