//! `{{parameter}}` placeholders in a skill's body. One pass: values are not expanded again, and other text between
//! braces is kept, because skills contain text that looks like templates of other tools.

use super::parameter::{ResolvedParameters, is_parameter_name};

/// Returns the body with each `{{name}}` replaced by its value, if it has one.
pub fn fill_placeholders(body: &str, values: &ResolvedParameters) -> String {
    let mut filled = String::with_capacity(body.len());
    let mut end = 0;
    for (from, to, name) in spans(body) {
        if let Some(value) = values.get(name) {
            filled.push_str(&body[end..from]);
            filled.push_str(value);
            end = to;
        }
    }
    filled.push_str(&body[end..]);
    filled
}

/// The names between double braces, in order, with repetitions.
pub fn placeholders(body: &str) -> impl Iterator<Item = &str> {
    spans(body).map(|(_, _, name)| name)
}

/// Start, end and name of each placeholder.
fn spans(body: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let open = at + body[at..].find("{{")?;
            let rest = &body[open + 2..];
            // A name is short and has no braces, so the search for its end is bounded.
            let close = rest.bytes().take(MAX_INSIDE).position(|byte| byte == b'}' || byte == b'{');
            match close.filter(|close| rest[*close..].starts_with("}}")) {
                Some(close) if is_parameter_name(rest[..close].trim()) => {
                    at = open + 2 + close + 2;
                    return Some((open, at, rest[..close].trim()));
                }
                // `{{{x}}`: the inner pair is a placeholder.
                _ => at = open + 1,
            }
        }
    })
}

const MAX_INSIDE: usize = 80;

#[cfg(test)]
mod tests {
    use super::{ResolvedParameters, fill_placeholders, placeholders};
    use proptest::prelude::*;

    fn values(pairs: &[(&str, &str)]) -> ResolvedParameters {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn only_parameters_are_replaced() {
        let values = values(&[("a", "1"), ("b", "{{a}}")]);
        for (body, filled) in [
            ("{{a}} and {{ a }}", "1 and 1"),
            ("{{b}}{{a}}", "{{a}}1"),
            ("{{c}} {a} {{a} {{ a b }} {{", "{{c}} {a} {{a} {{ a b }} {{"),
            ("{{{a}}}", "{1}"),
            ("{% for x in y %}{{ x.y }}{% endfor %}", "{% for x in y %}{{ x.y }}{% endfor %}"),
            ("${{ a }} é{{a}}é", "$1 é1é"),
            ("{{\na\n}}", "1"),
        ] {
            assert_eq!(fill_placeholders(body, &values), filled, "{body}");
        }
        assert_eq!(placeholders("{{a}} {{b}} {{a}}").collect::<Vec<_>>(), ["a", "b", "a"]);
    }

    proptest! {
        #[test]
        fn without_values_the_body_does_not_change(body in any::<String>()) {
            prop_assert_eq!(fill_placeholders(&body, &ResolvedParameters::new()), body);
        }

        #[test]
        fn values_are_not_expanded_again(
            before in "[a-z{} é\n]{0,12}", value in r"[a-z{}$\\ é]{0,24}", after in "[a-z} é\n]{0,12}",
        ) {
            // A brace directly before would start the placeholder one character earlier.
            let before = before.trim_end_matches('{');
            let values = values(&[("name", &value)]);
            // Placeholders in the surrounding text are replaced too.
            let expected = format!("{}{value}{}", fill_placeholders(before, &values), fill_placeholders(&after, &values));
            let body = format!("{before}{{{{name}}}}{after}");
            prop_assume!(placeholders(&body).count() == placeholders(before).count() + placeholders(&after).count() + 1);
            prop_assert_eq!(fill_placeholders(&body, &values), expected);
        }

        #[test]
        fn filling_never_fails_and_is_bounded(body in r"[{}a ]{0,200}", value in "[a-z{}]{0,8}") {
            let filled = fill_placeholders(&body, &values(&[("a", &value)]));
            prop_assert!(filled.len() <= body.len() * (value.len() + 1));
        }
    }
}
