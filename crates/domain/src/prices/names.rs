//! Maps model names to models.
//!
//! Vendors use several names for one model: an alias, and the alias with a release date. Any other suffix may mean
//! another model at another price (`claude-opus-4-6` and `claude-opus-4-6-fast` differ sixfold), so only the suffixes
//! below are removed.

use std::collections::HashMap;

const MAX_BYTES: usize = 128;

/// Suffixes that name a release of the same model; `#` is a digit.
const RELEASES: [&str; 12] = [
    "-########",
    "-####-##-##",
    "-####",
    "-###",
    "-##-##",
    "-##-####",
    "-latest",
    "-preview",
    "-preview-##-##",
    "-preview-##-####",
    "-v#:#",
    "-########-v#:#",
];

/// Looks up `name` in `exact`, then in `stems` with and without its release suffix.
pub fn find(name: &str, exact: &HashMap<String, usize>, stems: &HashMap<String, usize>) -> Option<usize> {
    if name.len() > MAX_BYTES {
        return None;
    }
    let name = name.trim().to_ascii_lowercase();
    // Google's API lists its models as `models/gemini-…`.
    let name = name.strip_prefix("models/").unwrap_or(&name);
    if let Some(&index) = exact.get(name).or_else(|| stems.get(name)) {
        return Some(index);
    }
    // The longest stem first: `gemini-3.5-flash-preview` before `gemini-3.5-flash`.
    name.rmatch_indices('-').find_map(|(at, _)| {
        let (stem, tail) = name.split_at_checked(at)?;
        is_release(tail).then(|| stems.get(stem).copied())?
    })
}

fn is_release(tail: &str) -> bool {
    RELEASES.iter().any(|shape| {
        shape.len() == tail.len()
            && shape.bytes().zip(tail.bytes()).all(|(s, t)| if s == b'#' { t.is_ascii_digit() } else { s == t })
    })
}

#[cfg(test)]
mod tests {
    use super::find;
    use std::collections::HashMap;

    #[test]
    fn finds_releases_of_known_models_only() {
        let map = |names: &[(&str, usize)]| names.iter().map(|&(name, at)| (name.to_owned(), at)).collect();
        let exact: HashMap<_, _> = map(&[("gpt-4o", 1), ("anthropic/sonnet-4", 2)]);
        let stems: HashMap<_, _> = map(&[("sonnet-4", 2), ("sonnet-4-5", 3), ("flash", 4), ("us.sonnet-4", 5)]);
        let table = [
            ("gpt-4o", Some(1)),
            ("GPT-4o ", Some(1)),
            // An exact name is not a stem: a dated release may have another price.
            ("gpt-4o-2024-05-13", None),
            ("gpt-4o-mini", None),
            ("anthropic/sonnet-4", Some(2)),
            ("anthropic/sonnet-4-20250514", None),
            ("google/sonnet-4", None),
            ("sonnet-4", Some(2)),
            ("sonnet-4-20250514", Some(2)),
            ("sonnet-4-2025-05-14", Some(2)),
            ("sonnet-4-5-20250929", Some(3)),
            ("sonnet-4-5-latest", Some(3)),
            ("sonnet-4-6", None),
            ("sonnet-4-5-fast", None),
            ("sonnet-4-5-fast-20250929", None),
            ("sonnet-4-5-2025092", None),
            ("sonnet-4-5:free", None),
            ("sonnet-4-5[1m]", None),
            // On Vertex the price depends on the endpoint, which the name does not say.
            ("sonnet-4-5@20250929", None),
            ("models/flash", Some(4)),
            ("flash-002", Some(4)),
            ("flash-preview-05-20", Some(4)),
            ("flash-preview-09-2025", Some(4)),
            ("flash-preview-tts", None),
            ("flash-lite", None),
            ("us.sonnet-4-20250514-v1:0", Some(5)),
            ("eu.sonnet-4-20250514-v1:0", None),
            ("sönnet-４-20250514", None),
            ("-latest", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(find(name, &exact, &stems), expected, "{name}");
        }
        assert_eq!(find(&format!("sonnet-4{}", "-latest".repeat(100_000)), &exact, &stems), None);
    }
}
