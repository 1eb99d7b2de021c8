//! Search by words: how a text is split into words, what a query asks for, and the part of a text that shows a hit. Pure, so
//! that both databases find the same: they store and compare words, and decide nothing about letters.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The longest query, in characters.
pub const MAX_QUERY_CHARS: usize = 200;
const MAX_QUERY_WORDS: usize = 16;
/// Longer words are cut: nobody types them, and encoded data has many.
const MAX_WORD_CHARS: usize = 40;
/// How much of a text is indexed, and how many different words of it.
const MAX_INDEXED_BYTES: usize = 256 * 1024;
const MAX_INDEXED_WORDS: usize = 10_000;
/// The length of a snippet, and how much of it is before the first hit, in characters.
const SNIPPET_CHARS: usize = 200;
const SNIPPET_LEAD_CHARS: usize = 60;

/// A word of a text, folded, and where it is: from byte `start` to byte `end`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FoundWord {
    word: String,
    start: usize,
    end: usize,
}

/// Splits a text into words: runs of letters and digits, in lower case and without accents. A letter of a script that is
/// written without spaces is a word of its own.
fn words_of(text: &str) -> impl Iterator<Item = FoundWord> + '_ {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        while letters.next_if(|(_, letter)| !letter.is_alphanumeric()).is_some() {}
        let (start, first) = letters.next()?;
        let mut found = FoundWord { word: String::new(), start, end: start + first.len_utf8() };
        fold(first, &mut found.word);
        let (mut chars, alone) = (1, is_written_without_spaces(first));
        while let Some((at, letter)) =
            letters.next_if(|(_, letter)| !alone && letter.is_alphanumeric() && !is_written_without_spaces(*letter))
        {
            chars += 1;
            if chars <= MAX_WORD_CHARS {
                fold(letter, &mut found.word);
            }
            found.end = at + letter.len_utf8();
        }
        Some(found)
    })
}

/// Chinese, Japanese, Thai and their neighbors.
fn is_written_without_spaces(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Lower case, without the accents of Latin letters.
fn fold(letter: char, into: &mut String) {
    for letter in letter.to_lowercase() {
        match letter {
            'à'..='å' | 'ā' | 'ă' | 'ą' => into.push('a'),
            'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => into.push('c'),
            'ď' | 'đ' => into.push('d'),
            'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => into.push('e'),
            'ĝ' | 'ğ' | 'ġ' | 'ģ' => into.push('g'),
            'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => into.push('i'),
            'ĺ' | 'ļ' | 'ľ' | 'ł' => into.push('l'),
            'ñ' | 'ń' | 'ņ' | 'ň' => into.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => into.push('o'),
            'ŕ' | 'ŗ' | 'ř' => into.push('r'),
            'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => into.push('s'),
            'ţ' | 'ť' | 'ț' => into.push('t'),
            'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => into.push('u'),
            'ý' | 'ÿ' => into.push('y'),
            'ź' | 'ż' | 'ž' => into.push('z'),
            'ß' => into.push_str("ss"),
            'æ' => into.push_str("ae"),
            'œ' => into.push_str("oe"),
            // The dot that lower case adds to a Turkish I.
            '\u{307}' => {}
            letter => into.push(letter),
        }
    }
}

/// The different words of a text that are stored in the index.
pub fn indexed_words(text: &str) -> BTreeSet<String> {
    let end = (0..=text.len().min(MAX_INDEXED_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let mut words = BTreeSet::new();
    for found in words_of(&text[..end]) {
        words.insert(found.word);
        if words.len() == MAX_INDEXED_WORDS {
            break;
        }
    }
    words
}

/// What somebody looks for: all of these words. The last one may be the beginning of a word, because it may still be being
/// typed. Any text is a query; one without words finds nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchQuery {
    words: Vec<String>,
}

impl SearchQuery {
    pub fn parse(text: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        for found in words_of(text).take(MAX_QUERY_WORDS) {
            // The last one stays the last: it is the one that is being typed.
            words.retain(|word| *word != found.word);
            words.push(found.word);
        }
        Self { words }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words that must be there as they are, and the one that a word must begin with.
    pub fn parts(&self) -> Option<(&[String], &str)> {
        self.words.split_last().map(|(last, whole)| (whole, last.as_str()))
    }

    /// Returns whether a word of a text is one of these.
    fn has(&self, word: &str) -> Option<WordMatch> {
        let (whole, last) = self.parts()?;
        match () {
            () if word == last || whole.iter().any(|wanted| wanted == word) => Some(WordMatch::Whole),
            () if word.starts_with(last) => Some(WordMatch::Beginning),
            () => None,
        }
    }

    /// How well a text fits, from 0 to 1: `None` if a word is missing. A whole word counts twice as much as a beginning.
    pub fn score(&self, text: &str) -> Option<f64> {
        let (whole, last) = self.parts()?;
        let words = indexed_words(text);
        if !whole.iter().all(|word| words.contains(word)) {
            return None;
        }
        let ends_whole = words.contains(last);
        if !ends_whole && !words.range(last.to_owned()..).next().is_some_and(|word| word.starts_with(last)) {
            return None;
        }
        let points = whole.len() as f64 + if ends_whole { 1.0 } else { 0.5 };
        Some(points / self.words.len() as f64)
    }

    /// The part of a text that shows why it was found.
    pub fn snippet(&self, text: &str) -> Snippet {
        let first = words_of(text).find(|found| self.has(&found.word).is_some()).map_or(0, |found| found.start);
        let start = text[..first].char_indices().rev().take(SNIPPET_LEAD_CHARS).last().map_or(first, |(at, _)| at);
        // At the beginning of a word, unless it is far away.
        let start = match text[start..first].find(char::is_whitespace) {
            Some(space) if start > 0 => start + space + 1,
            _ => start,
        };
        let start = (start..=first).find(|at| text.is_char_boundary(*at)).unwrap_or(first);
        let rest = &text[start..];
        let end = rest.char_indices().nth(SNIPPET_CHARS).map_or(rest.len(), |(at, _)| at);
        let mut shown = String::new();
        if start > 0 {
            shown.push('…');
        }
        let offset = shown.len();
        // One line: a snippet is shown in a list.
        shown.extend(rest[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
        let highlights = words_of(&shown[offset..])
            .filter(|found| self.has(&found.word).is_some())
            .map(|found| {
                let units = |bytes: usize| shown[..offset + bytes].encode_utf16().count();
                HighlightRange { start: units(found.start), end: units(found.end) }
            })
            .collect();
        if end < rest.len() {
            shown.push('…');
        }
        Snippet { text: shown, highlights }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WordMatch {
    Whole,
    Beginning,
}

/// A part of a text, as one line, and the words in it that were looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Snippet {
    /// The text, as one line; `…` where it is cut.
    pub text: String,
    /// The words in it that were looked for.
    pub highlights: Vec<HighlightRange>,
}

/// A part of a snippet to highlight, in UTF-16 code units, as JavaScript counts: `text.slice(start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HighlightRange {
    /// Where it begins.
    pub start: usize,
    /// Where it ends: the first unit after it.
    pub end: usize,
}

#[cfg(test)]
mod tests {
    use super::{MAX_WORD_CHARS, SNIPPET_CHARS, SearchQuery, indexed_words};

    fn words(text: &str) -> Vec<String> {
        indexed_words(text).into_iter().collect()
    }

    #[test]
    fn a_text_is_split_into_folded_words() {
        for (text, expected) in [
            ("Hello, World! hello", vec!["hello", "world"]),
            ("my_function_name v1.2", vec!["2", "function", "my", "name", "v1"]),
            ("Zürich Ærø naïve STRASSE straße", vec!["aero", "naive", "strasse", "zurich"]),
            ("日本語 test", vec!["test", "日", "本", "語"]),
            ("Привет МИР", vec!["мир", "привет"]),
            ("\0 \u{1f600} '\"*():^~ -- ", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
        assert_eq!(words(&"x".repeat(10_000)), ["x".repeat(MAX_WORD_CHARS)]);
        assert!(words(&(0..50_000).map(|n| format!("{n} ")).collect::<String>()).len() <= 10_000);
    }

    #[test]
    fn a_query_asks_for_all_words_and_the_beginning_of_the_last() {
        let query = SearchQuery::parse("green ROOM");
        assert_eq!(query.parts(), Some((&["green".to_owned()][..], "room")));
        for (text, expected) in [
            ("The room is green", Some(1.0)),
            ("Green rooms", Some(0.75)),
            ("greenroom", None),
            ("greens room", None),
            ("room", None),
        ] {
            assert_eq!(query.score(text), expected, "{text:?}");
        }
        assert!(SearchQuery::parse("  '\"*-- ").is_empty());
        assert_eq!(SearchQuery::parse("").score("x"), None);
        assert_eq!(SearchQuery::parse("a b a").parts(), Some((&["b".to_owned()][..], "a")));
    }

    #[test]
    fn a_snippet_shows_the_hit_with_ranges_as_javascript_counts() {
        let text = format!("{} 😀 the Größe\nof it {}", "lead ".repeat(50), "tail ".repeat(100));
        let snippet = SearchQuery::parse("grosse it").snippet(&text);
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…') && !snippet.text.contains('\n'));
        assert!(snippet.text.chars().count() <= SNIPPET_CHARS + 2);
        let units: Vec<u16> = snippet.text.encode_utf16().collect();
        let shown: Vec<String> = snippet
            .highlights
            .iter()
            .map(|range| String::from_utf16(&units[range.start..range.end]).unwrap())
            .collect();
        assert_eq!(shown, ["Größe", "it"]);
        let nothing = SearchQuery::parse("zzz").snippet("short");
        assert_eq!((nothing.text.as_str(), nothing.highlights.len()), ("short", 0));
    }

    #[test]
    fn any_text_is_a_query_and_has_a_snippet() {
        let odd = "a\u{0}b\u{301}é😀日\u{202e}x%_'\"\\ß";
        let all: Vec<char> = odd.chars().collect();
        for from in 0..all.len() {
            for to in from..=all.len() {
                let text: String = all[from..to].iter().collect();
                let query = SearchQuery::parse(&text);
                if !query.is_empty() {
                    assert!(query.score(odd).is_some() || query.score(&text).is_some(), "{text:?}");
                }
                query.snippet(odd);
                query.snippet(&text);
            }
        }
    }
}
