//! What begins with `/`: commands of the chat itself. Anything else is a message, also `/name …`, which calls a skill. Pure.

use crate::cli::approve::ApprovalAnswer;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChatCommand {
    Help,
    /// Start over in a new room.
    New,
    /// Say where the conversation is.
    Room,
    /// Ask another agent, in a new room.
    Agent(String),
    /// Stop the answer.
    Stop,
    Quit,
}

pub const HELP: &str = "\
/new           start over in a new room
/agent NAME    ask another agent, in a new room
/room          show the room, to continue later with --room
/stop          stop the answer; so does Ctrl-C
/quit          leave; so does Ctrl-D
A line that ends with \\ continues on the next. /NAME … calls a skill. An approval is answered with y, n or a (always).";

/// The command of a line; `None` if the line is a message.
pub fn parse(line: &str) -> Option<ChatCommand> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    Some(match (word, rest.trim()) {
        ("/help" | "/?", "") => ChatCommand::Help,
        ("/new", "") => ChatCommand::New,
        ("/room", "") => ChatCommand::Room,
        ("/agent", name) if !name.is_empty() => ChatCommand::Agent(name.to_owned()),
        ("/stop", "") => ChatCommand::Stop,
        ("/quit" | "/exit", "") => ChatCommand::Quit,
        _ => return None,
    })
}

/// What a line means as the answer to an approval; `None` if it is neither yes nor no.
pub fn approval_answer(line: &str, is_question: bool, has_pattern: bool) -> Option<ApprovalAnswer> {
    if is_question {
        return (!line.trim().is_empty()).then(|| ApprovalAnswer::Text(line.trim().to_owned()));
    }
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(ApprovalAnswer::Allow),
        "a" | "always" => Some(ApprovalAnswer::Always { has_pattern }),
        "n" | "no" => Some(ApprovalAnswer::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ChatCommand, approval_answer, parse};
    use crate::cli::approve::ApprovalAnswer;

    #[test]
    fn only_known_words_are_commands() {
        for (line, expected) in [
            ("/help", Some(ChatCommand::Help)),
            (" /quit ", Some(ChatCommand::Quit)),
            ("/agent  Ada Lovelace", Some(ChatCommand::Agent("Ada Lovelace".into()))),
            ("/agent", None),
            ("/release-notes 1.2", None),
            ("/new idea", None),
            ("hello /quit", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn an_approval_takes_a_letter_and_a_question_a_text() {
        assert_eq!(approval_answer(" Y ", false, false), Some(ApprovalAnswer::Allow));
        assert_eq!(approval_answer("a", false, true), Some(ApprovalAnswer::Always { has_pattern: true }));
        assert_eq!(approval_answer("no", false, false), Some(ApprovalAnswer::Deny));
        assert_eq!(approval_answer("maybe", false, false), None);
        assert_eq!(approval_answer("", false, false), None, "nothing is allowed by accident");
        assert_eq!(approval_answer("the blue one", true, false), Some(ApprovalAnswer::Text("the blue one".into())));
        assert_eq!(approval_answer(" ", true, false), None);
    }
}
