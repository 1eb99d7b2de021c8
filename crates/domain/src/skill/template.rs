//! `{{parameter}}` in a skill's body. One pass: a value is data and is never looked at again, and whatever is no
//! parameter of the skill stays as it is, because skills hold text that looks like templates of other tools.

use super::parameter::{Values, is_name};

/// The body with each `{{name}}` that has a value replaced by it.
pub fn fill(body: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(body.len());
    let mut end = 0;
    for (from, to, name) in places(body) {
        if let Some(value) = values.get(name) {
            filled.push_str(&body[end..from]);
            filled.push_str(value);
            end = to;
        }
    }
    filled.push_str(&body[end..]);
    filled
}

/// The names between double braces, in order, each as often as it is there.
pub fn placeholders(body: &str) -> impl Iterator<Item = &str> {
    places(body).map(|(_, _, name)| name)
}

/// Where each begins and ends.
fn places(body: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let open = at + body[at..].find("{{")?;
            let rest = &body[open + 2..];
            // A name is short and holds no brace, so the search for its end is short too.
            let close = rest.bytes().take(MAX_INSIDE).position(|byte| byte == b'}' || byte == b'{');
            match close.filter(|close| rest[*close..].starts_with("}}")) {
                Some(close) if is_name(rest[..close].trim()) => {
                    at = open + 2 + close + 2;
                    return Some((open, at, rest[..close].trim()));
                }
                // `{{{x}}`: the inner pair is one.
                _ => at = open + 1,
            }
        }
    })
}

const MAX_INSIDE: usize = 80;

#[cfg(test)]
mod tests {
    use super::{Values, fill, placeholders};
    use proptest::prelude::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn parameters_are_filled_and_nothing_else_is_touched() {
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
            assert_eq!(fill(body, &values), filled, "{body}");
        }
        assert_eq!(placeholders("{{a}} {{b}} {{a}}").collect::<Vec<_>>(), ["a", "b", "a"]);
    }

    proptest! {
        #[test]
        fn without_values_nothing_changes(body in any::<String>()) {
            prop_assert_eq!(fill(&body, &Values::new()), body);
        }

        #[test]
        fn a_value_is_data_and_comes_out_as_it_went_in(
            before in "[a-z{} é\n]{0,12}", value in r"[a-z{}$\\ é]{0,24}", after in "[a-z} é\n]{0,12}",
        ) {
            // A brace right before would begin the placeholder one earlier.
            let before = before.trim_end_matches('{');
            let values = values(&[("name", &value)]);
            // What the surroundings hold themselves is filled alike.
            let expected = format!("{}{value}{}", fill(before, &values), fill(&after, &values));
            let body = format!("{before}{{{{name}}}}{after}");
            prop_assume!(placeholders(&body).count() == placeholders(before).count() + placeholders(&after).count() + 1);
            prop_assert_eq!(fill(&body, &values), expected);
        }

        #[test]
        fn filling_never_fails_and_is_bounded(body in r"[{}a ]{0,200}", value in "[a-z{}]{0,8}") {
            let filled = fill(&body, &values(&[("a", &value)]));
            prop_assert!(filled.len() <= body.len() * (value.len() + 1));
        }
    }
}
