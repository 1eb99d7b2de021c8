//! The expected answer of the scripted provider to a directive: an independent implementation of `docs/scripted.md`.

use serde_json::Value;

/// The complete answer.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ExpectedAnswer {
    pub text: String,
    pub thinking: String,
    pub call: Option<ExpectedCall>,
}

/// A tool call whose result equals its input.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCall {
    pub name: String,
    pub input: Value,
}

pub fn answer(prompt: &str) -> Option<ExpectedAnswer> {
    let (directive, rest) = prompt.split_once(' ')?;
    let mut expected = ExpectedAnswer::default();
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
            expected.call = Some(ExpectedCall { name: name.to_owned(), input: serde_json::from_str(input).ok()? });
        }
        "!ask" => {
            let (name, input) = rest.split_once(' ')?;
            expected.text = "allowed".to_owned();
            expected.call = Some(ExpectedCall { name: name.to_owned(), input: serde_json::from_str(input).ok()? });
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
    fn all_directives_of_the_writers_are_known() {
        let text = |prompt| answer(prompt).unwrap().text;
        assert_eq!(text("!count 3 10"), "1 2 3");
        assert_eq!(text("!think a b"), "I thought about it, in 2 words.");
        assert_eq!(text("!tool look {\"a\":1}"), "I used look.");
        assert_eq!(text("!ask deploy {\"a\":1}"), "allowed");
        assert_eq!(text("!flood 65").len(), 65);
        assert!(text("!flood 65").ends_with(".\na"));
        assert!(answer("hello there").is_none());
    }
}
