//! What the scripted provider says to a directive, worked out here a second time, from `docs/scripted.md`.

use serde_json::Value;

/// The whole answer, were it not cut short.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expected {
    pub text: String,
    pub thinking: String,
    pub call: Option<Call>,
}

/// A tool call; its result is its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub input: Value,
}

pub fn answer(prompt: &str) -> Option<Expected> {
    let (directive, rest) = prompt.split_once(' ')?;
    let mut expected = Expected::default();
    match directive {
        "!count" => {
            let count: u64 = rest.split(' ').next()?.parse().ok()?;
            let words: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
            expected.text = words.join(" ");
        }
        "!think" => {
            expected.thinking = rest.to_owned();
            expected.text = format!("I thought about it, in {} words.", rest.split_whitespace().count());
        }
        "!tool" => {
            let (name, input) = rest.split_once(' ')?;
            expected.text = format!("I used {name}.");
            expected.call = Some(Call { name: name.to_owned(), input: serde_json::from_str(input).ok()? });
        }
        "!flood" => {
            let line = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['.', '\n']);
            expected.text = line.cycle().take(rest.parse().ok()?).collect();
        }
        "!fail" => expected.text = "I am about to fail.".to_owned(),
        _ => return None,
    }
    Some(expected)
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn every_directive_the_writers_use_is_foreseen() {
        let text = |prompt| answer(prompt).unwrap().text;
        assert_eq!(text("!count 3 10"), "1 2 3");
        assert_eq!(text("!think a b"), "I thought about it, in 2 words.");
        assert_eq!(text("!tool look {\"a\":1}"), "I used look.");
        assert_eq!(text("!flood 65").len(), 65);
        assert!(text("!flood 65").ends_with(".\na"));
        assert!(answer("hello there").is_none());
    }
}
