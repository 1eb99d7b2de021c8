//! Removes the wrappers that CLIs and Greenroom add around user text.

/// Blocks that CLIs add to a user message: reminders, context, notes.
const BLOCKS: &[&str] = &[
    "system-reminder",
    "environment_context",
    "user_instructions",
    "session_context",
    "INSTRUCTIONS",
    "command-name",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "skills_instructions",
    "permissions instructions",
    "permissions_instructions",
    "collaboration_mode",
    "apps_instructions",
    "plugins_instructions",
    "turn_aborted",
    "user_shell_command",
    "recommended_plugins",
    "multi_agent_mode",
];

/// Greenroom's recap: messages of the room that the session does not know.
const RECAP: &str = "conversation_so_far";
const SAID: &str = "said";
/// Results of XML tool calls.
const RESULTS: &str = "function_results";
const RESULT: &str = "result";
const INTERRUPTED: &str = "[Request interrupted by user";

/// One user text without its wrappers.
#[derive(Debug, PartialEq, Eq)]
pub struct UnwrappedText {
    /// Empty if there were only wrappers.
    pub text: String,
    /// The texts of a recap, oldest first.
    pub recap_texts: Vec<String>,
    /// Results of XML tool calls.
    pub results: Vec<String>,
}

pub fn unwrap(raw: &str) -> UnwrappedText {
    let (text, recaps) = cut(raw.to_owned(), RECAP);
    let told = recaps.into_iter().flat_map(|recap| cut(recap, SAID).1).map(|said| said.trim().to_owned()).collect();
    let (mut text, results) = cut(text, RESULTS);
    let results = results.into_iter().flat_map(|all| cut(all, RESULT).1).map(|result| plain(&result)).collect();
    for block in BLOCKS {
        text = cut(text, block).0;
    }
    while let Some(begin) = text.find(INTERRUPTED) {
        let Some(length) = text[begin..].find(']') else { break };
        text.replace_range(begin..=begin + length, "");
    }
    let text = text.trim();
    // Codex sends the project's instructions as a user message.
    let text = if text.starts_with("# AGENTS.md") { "" } else { text };
    UnwrappedText { text: text.to_owned(), recap_texts: told, results }
}

/// Returns the content of the output or error element of a result.
fn plain(result: &str) -> String {
    let (_, output) = cut(result.to_owned(), "output");
    let (_, error) = cut(result.to_owned(), "error");
    output.into_iter().chain(error).map(|text| text.trim().to_owned()).collect()
}

/// Returns the text without the elements of this name, and their contents.
fn cut(mut text: String, name: &str) -> (String, Vec<String>) {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let (mut inside, mut from) = (Vec::new(), 0);
    while let Some(begin) = text[from..].find(&open).map(|at| at + from) {
        let after_name = begin + open.len();
        let is_whole_name = text[after_name..].starts_with(|next: char| next == '>' || next.is_whitespace());
        let Some(body) = text[after_name..].find('>').map(|at| after_name + at + 1).filter(|_| is_whole_name) else {
            from = after_name;
            continue;
        };
        let Some(end) = text[body..].find(&close).map(|at| body + at) else { break };
        inside.push(text[body..end].to_owned());
        text.replace_range(begin..end + close.len(), "");
        from = begin;
    }
    (text, inside)
}

#[cfg(test)]
mod tests {
    use super::unwrap;

    #[test]
    fn cli_blocks_are_removed() {
        let wrapped = "<system-reminder>\nbe good\n</system-reminder>\n<environment_context a=\"b\">x</environment_context>\
             hello <turn_aborted>y</turn_aborted>[Request interrupted by user for tool use]\nthere";
        assert_eq!(unwrap(wrapped).text, "hello \nthere");
        assert_eq!(unwrap("<permissions instructions>x</permissions instructions>").text, "");
        assert_eq!(unwrap("# AGENTS.md instructions for /x\nbe good").text, "");
    }

    #[test]
    fn text_similar_to_a_block_is_kept() {
        for text in ["<system-reminders>x</system-reminders>", "<system-reminder>never closed", "a < b > c", "<said"] {
            assert_eq!(unwrap(text).text, text);
        }
    }

    #[test]
    fn xml_results_are_not_user_text() {
        let wrapped = "<function_results>\n<result>\n<name>a</name>\n<output>\none\n</output>\n</result>\n\
                    <result>\n<name>b</name>\n<error>\ntwo\n</error>\n</result>\n</function_results>";
        let found = unwrap(wrapped);
        assert_eq!((found.text.as_str(), found.results), ("", vec!["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn recaps_are_not_user_text() {
        let recap = "<conversation_so_far>\n<said by=\"ann\">\n!count 5\n</said>\n<said by=\"you\">\n1 2\n3\n</said>\n</conversation_so_far>\n\n!recall";
        let found = unwrap(recap);
        assert_eq!(found.text, "!recall");
        assert_eq!(found.recap_texts, ["!count 5", "1 2\n3"]);
    }
}
