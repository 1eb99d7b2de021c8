//! `Accept` and the headers like it: entries with a quality (RFC 9110, 12.5). Pure.

use crate::error::{Code, Problem};
use axum::http::{HeaderMap, header};

/// The name of one entry, in lower case, and its quality in thousandths. A quality that is no number counts as 0.
pub fn entry(text: &str) -> (String, u16) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("q").then(|| value.trim().to_owned())
    });
    let quality = match weight {
        None => 1000,
        Some(weight) => match weight.parse::<f32>() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
            Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0).round() as u16,
            _ => 0,
        },
    };
    (name, quality)
}

/// Whether the client lists this media type by name.
pub fn names(headers: &HeaderMap, kind: &str) -> bool {
    entries(headers).any(|(name, quality)| name == kind && quality > 0)
}

fn entries(headers: &HeaderMap) -> impl Iterator<Item = (String, u16)> {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).filter(|entry| !entry.trim().is_empty()).map(entry)
}

/// The media type out of `offered` that the client prefers; among equals the first. Everything is acceptable to a client
/// that says nothing.
pub fn choose<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Result<&'a str, Problem> {
    let entries: Vec<(String, u16)> = entries(headers).collect();
    let quality = |kind: &str| {
        if entries.is_empty() {
            return 1000;
        }
        let group = kind.split('/').next().unwrap_or_default();
        // The most specific entry decides, whatever its quality.
        let of = |name: &str| entries.iter().filter(|entry| entry.0 == name).map(|entry| entry.1).max();
        of(kind).or_else(|| of(&format!("{group}/*"))).or_else(|| of("*/*")).or_else(|| of("*")).unwrap_or(0)
    };
    let mut best: Option<(&str, u16)> = None;
    for kind in offered {
        let quality = quality(kind);
        if quality > best.map_or(0, |(_, best)| best) {
            best = Some((kind, quality));
        }
    }
    best.map(|(kind, _)| kind).ok_or_else(|| {
        let offered = offered.join(" and ");
        Problem::new(Code::NotAcceptable, format!("This path has {offered}; change the Accept header."))
    })
}

#[cfg(test)]
mod tests {
    use super::choose;
    use axum::http::{HeaderMap, HeaderValue, header};

    const OFFERED: [&str; 2] = ["application/json", "text/event-stream"];

    fn chosen(accept: &'static str) -> Option<&'static str> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        choose(&headers, &OFFERED).ok()
    }

    #[test]
    fn the_preferred_type_wins_whatever_its_case() {
        assert_eq!(choose(&HeaderMap::new(), &OFFERED).unwrap(), "application/json");
        for (accept, kind) in [
            ("", "application/json"),
            ("*/*", "application/json"),
            ("text/event-stream", "text/event-stream"),
            ("TEXT/Event-Stream; charset=utf-8", "text/event-stream"),
            ("text/*", "text/event-stream"),
            ("application/json, text/event-stream;q=0", "application/json"),
            ("application/json, text/event-stream;q=0.1", "application/json"),
            ("application/json;q=0.2, text/event-stream", "text/event-stream"),
            ("text/html, */*;q=0.1", "application/json"),
            ("application/json;q=0, */*", "text/event-stream"),
            ("application/json, text/event-stream", "application/json"),
        ] {
            assert_eq!(chosen(accept), Some(kind), "{accept}");
        }
    }

    #[test]
    fn nothing_acceptable_is_refused() {
        for accept in
            ["application/xml", "text/html, image/*", "application/json;q=0", "*/*;q=0", "text/event-stream;q=x"]
        {
            assert_eq!(chosen(accept), None, "{accept}");
        }
    }
}
