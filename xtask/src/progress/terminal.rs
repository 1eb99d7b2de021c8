//! How wide the terminal is. The standard library cannot say, so `stty` is asked once.

use std::process::{Command, Stdio};

const USUAL_WIDTH: usize = 80;

pub fn width() -> usize {
    let asked = Command::new("stty").arg("size").stdin(Stdio::inherit()).stderr(Stdio::null()).output();
    asked.ok().and_then(|answer| columns(&String::from_utf8_lossy(&answer.stdout))).unwrap_or(USUAL_WIDTH)
}

/// `stty size` prints rows and columns; a terminal that does not know its size prints zeros.
fn columns(answer: &str) -> Option<usize> {
    let columns = answer.split_whitespace().nth(1)?.parse().ok()?;
    (columns > 20).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn columns_are_the_second_number() {
        assert_eq!(columns("24 132\n"), Some(132));
        assert_eq!(columns("0 0\n"), None);
        assert_eq!(columns(""), None);
    }
}
