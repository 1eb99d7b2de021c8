//! Makes untrusted text harmless on a terminal. It works on single characters without state, so an escape sequence that
//! is split over two deltas is caught as well: without its first character the rest is plain text.

use std::borrow::Cow;

/// Sanitizes text of several lines. Newlines and tabs stay; carriage returns are removed, so that CRLF becomes LF.
pub fn text(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '\n' | '\t' => Keep,
        '\r' => Drop,
        c if is_terminal_control(c) => Show,
        _ => Keep,
    })
}

/// Sanitizes text for one line of at most `limit` characters.
pub fn line(text: &str, limit: usize) -> String {
    let shown = replaced(text, |c| match c {
        '\n' | '\t' => Space,
        '\r' => Drop,
        c if is_terminal_control(c) || matches!(c, '\u{2028}' | '\u{2029}') => Show,
        _ => Keep,
    });
    if shown.chars().count() <= limit {
        return shown.into_owned();
    }
    shown.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// Sanitizes JSON text for one line. Control characters that JSON allows become `\u` escapes, so the value stays the
/// same: such characters occur only inside strings.
pub fn json(json: &str) -> Cow<'_, str> {
    replaced(json, |c| match c {
        '\n' | '\r' | '\t' => Space,
        c if is_terminal_control(c) || matches!(c, '\u{2028}' | '\u{2029}') => Escape,
        _ => Keep,
    })
}

/// Sanitizes one complete log line. `colors` keeps the color sequences that the log formatter wrote.
pub fn log_line(text: &str, colors: bool) -> String {
    let (body, end) = text.strip_suffix('\n').map_or((text, ""), |body| (body, "\n"));
    let mut out = String::with_capacity(text.len());
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colors.then(|| color_change(rest)).flatten() {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '\t' => out.push(' '),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if is_terminal_control(c) => push_visible(&mut out, c),
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push_str(end);
    out
}

/// The length of a color sequence (`ESC [ digits and semicolons m`) at the start of the text.
fn color_change(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[length..].starts_with('m').then_some(length + 3)
}

/// Returns whether a character is a control character or reorders text on a screen.
fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

enum CharAction {
    Keep,
    Drop,
    Space,
    /// Replace by a visible symbol.
    Show,
    /// Replace by a JSON escape.
    Escape,
}
use CharAction::{Drop, Escape, Keep, Show, Space};

fn replaced(text: &str, fate: impl Fn(char) -> CharAction) -> Cow<'_, str> {
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
    fn invariant_16_no_text_controls_a_terminal() {
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
    fn newlines_tabs_and_every_script_are_kept() {
        let plain = "one\ttwo\nдва 三 🦀 e\u{301} العربية\n";
        assert_eq!(text(plain), plain);
        assert!(matches!(text(plain), std::borrow::Cow::Borrowed(_)), "nothing is copied");
        assert_eq!(text("a\r\nb\rc"), "a\nbc");
    }

    #[test]
    fn a_line_has_a_limited_length() {
        assert_eq!(line("a\nb\tc\u{2028}d", 80), "a b c\\u{2028}d");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcde…");
        assert_eq!(line("日本語日本語", 3), "日本…");
    }

    #[test]
    fn sanitized_json_is_the_same_value() {
        let value = serde_json::json!({"t": "\u{9b}2J\u{7f}\u{202e}\n\u{1b}é🦀\u{2028}"});
        let original = value.to_string();
        let safe = json(&original);
        assert!(!safe.chars().any(|c| c.is_control() || c == '\u{202e}'), "{safe:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    #[test]
    fn a_log_event_is_one_line_and_keeps_only_colors() {
        assert_eq!(log_line("x\nERROR forged\r\n", false), "x\\nERROR forged\\r\n");
        assert_eq!(log_line("\u{1b}[2;31mx\u{1b}[0m\u{1b}[2J\n", true), "\u{1b}[2;31mx\u{1b}[0m␛[2J\n");
        assert_eq!(log_line("\u{1b}[31mx", false), "␛[31mx");
        assert_eq!(log_line("\u{1b}[31", true), "␛[31");
    }
}
