//! Prints rows in columns, with every cell sanitized.

use super::sanitize;
use std::io::{self, Write};

/// Maximum width of a cell; the last column may be wider.
const CELL: usize = 48;
const LAST_CELL: usize = 400;

pub fn print(out: &mut impl Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
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
    for row in std::iter::once(&titles).chain(&rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_aligned_and_cells_are_one_line() {
        let rows = vec![vec!["a\nb".to_owned(), "Zoë".to_owned()], vec!["longer".to_owned(), "\u{1b}[2Jx".to_owned()]];
        let mut out = Vec::new();
        super::print(&mut out, &["id", "name"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "ID      NAME\na b     Zoë\nlonger  ␛[2Jx\n");
    }
}
