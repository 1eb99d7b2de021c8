//! The name of an MCP tool for agents, policies and events: `mcp__{server}__{tool}`, the form that Claude Code uses.

/// Returns the name of a server's tool.
pub fn tool_name(server: &str, tool: &str) -> String {
    format!("{}__{tool}", server_pattern(server))
}

/// Returns the start of the names of a server's tools: what Claude Code takes for "all tools of this server".
pub fn server_pattern(server: &str) -> String {
    format!("mcp__{server}")
}

/// Returns the tool if `name` is the name of a tool of this server. The server must be known: both parts may contain
/// `__`, so a name alone can be read in several ways.
pub fn tool_of<'a>(server: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix("mcp__")?.strip_prefix(server)?.strip_prefix("__").filter(|tool| !tool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{server_pattern, tool_name, tool_of};

    #[test]
    fn a_name_leads_back_to_its_tool() {
        for (server, tool, name) in [
            ("files", "read", "mcp__files__read"),
            ("my_files-2", "read__all", "mcp__my_files-2__read__all"),
            ("a__b", "_c", "mcp__a__b___c"),
        ] {
            assert_eq!(tool_name(server, tool), name);
            assert_eq!(tool_of(server, name), Some(tool), "{name}");
            assert!(name.starts_with(&server_pattern(server)));
        }
    }

    #[test]
    fn names_of_other_tools_are_not_recognized() {
        for name in ["read", "mcp__files", "mcp__files__", "mcp_files_read", "mcp__file__read", "mcp__files2__read", ""]
        {
            assert_eq!(tool_of("files", name), None, "{name}");
        }
    }
}
