//! Shortens texts at character boundaries.

/// Shortens a text to its beginning and its end, with a note on the omitted bytes in between.
pub(crate) fn truncate_middle(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    format!("{}\n[… {} bytes are left out here …]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::truncate_middle;

    #[test]
    fn long_text_is_cut_in_the_middle_at_character_boundaries() {
        assert_eq!(truncate_middle("short", 10), "short");
        let long = "ä".repeat(100);
        for most in 1..200 {
            let kept = truncate_middle(&long, most);
            assert!(kept.contains("are left out here"), "{most}: {kept}");
        }
        assert!(
            truncate_middle("begin middle end", 8).starts_with("begi\n")
                && truncate_middle("begin middle end", 8).ends_with(" end")
        );
    }
}
