//! Finds the skill body that an agent's answer proposes: a fenced block whose first word is `skill`.

/// Returns the last such block of an answer. A body may contain fenced blocks: a nested block that names its language
/// is part of the body, up to its own end.
pub fn proposed_body(answer: &str) -> Option<String> {
    let lines: Vec<&str> = answer.lines().collect();
    let mut found = None;
    let mut at = 0;
    while at < lines.len() {
        match fence(lines[at]) {
            Some((mark, length, "skill")) => {
                let inside = &lines[at + 1..];
                let Some(end) = end_of(inside, mark, length) else { break };
                found = Some(inside[..end].join("\n"));
                at += end + 2;
            }
            _ => at += 1,
        }
    }
    found.filter(|body| !body.trim().is_empty()).map(|body| body + "\n")
}

fn end_of(lines: &[&str], mark: char, length: usize) -> Option<usize> {
    let mut nested = 0_usize;
    for (n, line) in lines.iter().enumerate() {
        match fence(line) {
            Some((m, l, word)) if m == mark && l >= length => match (word, nested) {
                ("", 0) => return Some(n),
                ("", _) => nested -= 1,
                _ => nested += 1,
            },
            _ => {}
        }
    }
    None
}

/// Returns the fence character, its length and the first word after it.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_end();
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim_start_matches(' ');
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let word = line.trim_start_matches(mark);
    let length = line.len() - word.len();
    (indent < 4 && length >= 3 && !word.contains('`'))
        .then(|| (mark, length, word.split_whitespace().next().unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::proposed_body;
    use proptest::prelude::*;

    #[test]
    fn finds_the_block_including_nested_blocks() {
        for (answer, body) in [
            ("no block", None),
            ("```skill\n# New\n```", Some("# New\n")),
            ("Here:\n\n````skill\n# New\n```sh\nls\n```\nmore\n````\nDone.", Some("# New\n```sh\nls\n```\nmore\n")),
            ("```skill\n# New\n```sh\nls\n```\nmore\n```\nDone.", Some("# New\n```sh\nls\n```\nmore\n")),
            ("~~~skill\n```\nx\n```\n~~~", Some("```\nx\n```\n")),
            ("```skill\nfirst\n```\n```skill\nsecond\n```", Some("second\n")),
            ("```skill\nnever ends", None),
            ("```skill\n \n```", None),
            ("```python\nskill\n```", None),
            ("use ```skill``` blocks", None),
        ] {
            assert_eq!(proposed_body(answer).as_deref(), body, "{answer}");
        }
    }

    proptest! {
        #[test]
        fn any_body_in_a_longer_fence_is_found_whole(body in r"[a-z`\n ]{1,60}") {
            let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2);
            let fence = "`".repeat(longest + 1);
            let answer = format!("Better:\n{fence}skill\n{body}\n{fence}\n");
            let expected = body.lines().collect::<Vec<_>>().join("\n");
            let kept = Some(format!("{expected}\n")).filter(|_| !body.trim().is_empty());
            prop_assert_eq!(proposed_body(&answer).map(|b| b.trim_end().to_owned()), kept.map(|b| b.trim_end().to_owned()));
        }
    }
}
