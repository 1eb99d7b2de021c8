//! Makes foreign text harmless on a terminal. Works on single characters and keeps no state, so a sequence that is split
//! over two deltas is caught as well: without its first character the rest is plain text.

use std::borrow::Cow;

/// Text of several lines. Newlines and tabs stay; a carriage return goes, so that CRLF is a plain line end.
pub fn text(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '\n' | '\t' => Keep,
        '\r' => Drop,
        c if moves(c) => Show,
        _ => Keep,
    })
}

/// Text for one line of at most `limit` characters.
pub fn line(text: &str, limit: usize) -> String {
    let shown = replaced(text, |c| match c {
        '\n' | '\t' => Space,
        '\r' => Drop,
        c if moves(c) || matches!(c, '\u{2028}' | '\u{2029}') => Show,
        _ => Keep,
    });
    if shown.chars().count() <= limit {
        return shown.into_owned();
    }
    shown.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// JSON text on one line. What JSON itself leaves as it is but a terminal obeys becomes a `\u` escape, so the value
/// stays the same. Such characters stand only inside strings.
pub fn json(json: &str) -> Cow<'_, str> {
    replaced(json, |c| match c {
        '\n' | '\r' | '\t' => Space,
        c if moves(c) || matches!(c, '\u{2028}' | '\u{2029}') => Escape,
        _ => Keep,
    })
}

/// One finished log line. `colours` lets through the colour changes that the log formatter itself wrote.
pub fn log_line(text: &str, colours: bool) -> String {
    let (body, end) = text.strip_suffix('\n').map_or((text, ""), |body| (body, "\n"));
    let mut out = String::with_capacity(text.len());
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colours.then(|| colour_change(rest)).flatten() {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '\t' => out.push(' '),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if moves(c) => push_visible(&mut out, c),
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push_str(end);
    out
}

/// The length of a colour sequence (`ESC [ digits and semicolons m`) at the start of the text.
fn colour_change(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[length..].starts_with('m').then_some(length + 3)
}

/// Control characters, and the marks that reorder text on a screen.
fn moves(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

enum Fate {
    Keep,
    Drop,
    Space,
    /// As a visible stand-in.
    Show,
    /// As a JSON escape.
    Escape,
}
use Fate::{Drop, Escape, Keep, Show, Space};

fn replaced(text: &str, fate: impl Fn(char) -> Fate) -> Cow<'_, str> {
    if text.chars().all(|c| matches!(fate(c), Keep)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match fate(c) {
            Keep => out.push(c),
            Drop => {}
            Space => out.push(' '),
            Show => push_visible(&mut out, c),
            Escape => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    Cow::Owned(out)
}

fn push_visible(out: &mut String, c: char) {
    let picture = match u32::from(c) {
        code @ 0..=0x1F => char::from_u32(0x2400 + code),
        0x7F => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        None => out.extend(c.escape_unicode()),
    }
}

#[cfg(test)]
mod tests {
    use super::{json, line, log_line, text};

    #[test]
    fn invariant_16_no_text_moves_a_terminal() {
        let hostile = "a\u{1b}[2J\u{1b}]0;title\u{7}b\u{9b}31mc\u{8}d\u{7f}e\u{202e}f\u{0}g\u{90}h";
        for shown in [text(hostile).into_owned(), line(hostile, 200), log_line(hostile, false), log_line(hostile, true)]
        {
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert!(!shown.contains('\u{202e}'), "{shown:?}");
        }
        assert_eq!(text("\u{1b}[31mred"), "␛[31mred");
        assert_eq!(text("\u{9b}1m"), "\\u{9b}1m");
    }

    #[test]
    fn lines_tabs_and_every_script_stay() {
        let plain = "one\ttwo\nдва 三 🦀 e\u{301} العربية\n";
        assert_eq!(text(plain), plain);
        assert!(matches!(text(plain), std::borrow::Cow::Borrowed(_)), "nothing is copied");
        assert_eq!(text("a\r\nb\rc"), "a\nbc");
    }

    #[test]
    fn one_line_of_limited_length() {
        assert_eq!(line("a\nb\tc\u{2028}d", 80), "a b c\\u{2028}d");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcde…");
        assert_eq!(line("日本語日本語", 3), "日本…");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({"t": "\u{9b}2J\u{7f}\u{202e}\n\u{1b}é🦀\u{2028}"});
        let original = value.to_string();
        let safe = json(&original);
        assert!(!safe.chars().any(|c| c.is_control() || c == '\u{202e}'), "{safe:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    #[test]
    fn a_log_event_is_one_line_and_keeps_only_colours() {
        assert_eq!(log_line("x\nERROR forged\r\n", false), "x\\nERROR forged\\r\n");
        assert_eq!(log_line("\u{1b}[2;31mx\u{1b}[0m\u{1b}[2J\n", true), "\u{1b}[2;31mx\u{1b}[0m␛[2J\n");
        assert_eq!(log_line("\u{1b}[31mx", false), "␛[31mx");
        assert_eq!(log_line("\u{1b}[31", true), "␛[31");
    }
}
