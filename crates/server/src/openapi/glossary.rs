//! Descriptions of fields and parameters that mean the same wherever they appear. A doc comment on the field wins; a field
//! without either fails the test of the document.

use serde_json::Value;

/// By the name of the field, sorted.
const FIELDS: &[(&str, &str)] = &[
    ("accepted_version", "The version that was made from the proposal; `null` before that."),
    ("action", "What was done, such as `create`."),
    ("address", "The address of the client, if it is known."),
    ("agent", "The agent."),
    ("agentId", "The id of the agent."),
    ("agent_id", "The id of the agent; `null` if there is none."),
    ("agent_name", "The name of the agent."),
    ("agent_run_id", "The id of the run that answers."),
    ("agents", "The agents."),
    ("allow", "Patterns of tools that run without asking."),
    ("annotations", "What the server says about the tool; not checked."),
    ("approval_id", "The id of the approval."),
    ("approvals", "The approvals, or whether they are supported."),
    ("args", "The arguments of the program."),
    ("arguments", "The arguments of the tool, as its schema describes them."),
    ("ask", "Patterns of tools that wait for a person."),
    ("at", "The start of the bucket."),
    ("attachments", "The files that belong to the message."),
    ("attended_minutes", "For how long after a person's message agents may start follow-up rounds."),
    ("author", "Who wrote or decided it."),
    ("aware_only", "Whether the agent reads everything and speaks only when it is named."),
    ("body", "The instructions of the skill, in Markdown."),
    ("bucket", "The length of a bucket."),
    ("budgets", "The budgets."),
    ("bytes", "The size in bytes."),
    ("cache_read_tokens", "Input tokens that were read from the provider's cache."),
    ("cache_write_tokens", "Input tokens that were written to the provider's cache."),
    ("calls", "How many calls were made."),
    ("capabilities", "What the provider supports."),
    ("category", "A word to group skills by."),
    ("change", "What happened to the file."),
    ("checks", "The checks, in the order in which they were made."),
    ("child", "The run of another agent that the call started; absent if it started none."),
    ("child_run_id", "The run of another agent that the tool call started; absent if it started none."),
    ("code", "The stable code for programs."),
    ("command", "The program to start, for a server of type `stdio`."),
    ("comment", "What the person wrote."),
    ("compatibility", "What the skill needs to work."),
    ("completed", "How many ended as completed."),
    ("content", "The content."),
    ("conversationId", "The id of the conversation, to continue it."),
    ("cost", "In US dollars; `null` if the price is not known."),
    ("createdAt", "When it was created."),
    ("created_at", "When it was created; `null` if that is not known."),
    ("created_with", "The id of the token that created it, if one did."),
    ("critic", "Whether what the agent says is for people: other agents neither read it nor react to it."),
    ("data", "The data."),
    ("debate_rounds", "How many rounds a debate has."),
    ("decided_at", "When a person decided; `null` before that."),
    ("decision", "What was decided."),
    ("default", "The value of a parameter that is not given."),
    ("delta", "The text to append."),
    ("deny", "Patterns of tools that are never run."),
    ("description", "What it is for."),
    ("destructive", "Whether the tool may delete or overwrite something."),
    ("detail", "More about the change."),
    ("dialect", "The format of the stream."),
    ("disabled", "Whether agents do without the server."),
    ("displayName", "The name that people see."),
    ("display_name", "The name that people see, if it is another."),
    ("duration_ms", "How long it took in milliseconds; `null` before its end."),
    ("ended_at", "When it ended; `null` before that."),
    ("entries", "The entries, newest first."),
    ("env", "Environment variables of the program. Values are shown as `***`."),
    ("epoch", "Identifies the journal's history; changes when a backup is restored."),
    ("error", "What went wrong; `null` if nothing did."),
    ("event", "The event."),
    ("events", "The events, in the order of their `seq`."),
    ("executable", "Whether the file can be executed."),
    ("experience", "0 to 100, from its training ratings; `null` before the first rating."),
    ("expires_at", "When it expires; `null` if it does not."),
    ("failed", "How many ended as failed."),
    ("failures", "How many calls failed."),
    ("file_count", "How many files it has besides `SKILL.md`."),
    ("files", "The files besides `SKILL.md`."),
    ("final_response", "Whether the agent speaks once, after all others."),
    ("findings", "What is wrong or could be better."),
    ("folder", "The folder that it is shown in; `null` if it is in none."),
    (
        "follow_up",
        "Whether agents react to each other after they have answered a message, round by round, until all skip.",
    ),
    ("forked_from", "The message of another room at which this one was branched off; absent for other rooms."),
    ("from", "The start of the range."),
    ("from_ms", "The start, in milliseconds since the run was queued."),
    ("head", "The `seq` of the newest event."),
    ("headers", "Headers of every request to the server. Values are shown as `***`."),
    ("heads", "The `seq` of the newest event of each followed room, by the room's id."),
    ("id", "The id."),
    ("idempotent", "Whether repeating the call changes nothing more."),
    ("improvements", "What should be better next time."),
    ("in_flight", "How many calls are in progress."),
    ("input", "The input."),
    ("input_tokens", "Tokens that the model read."),
    ("inspection", "Whether the provider's program is on this machine."),
    ("instructions", "What the server says about its use."),
    (
        "interrupt_every_turn",
        "Whether the agent reacts to every message: before the others, and again after each of them.",
    ),
    ("invoked", "In how many runs a person invoked it."),
    ("is_error", "Whether it failed."),
    ("isolation", "How the sandbox isolates what runs in the project."),
    ("issues", "What was wrong."),
    ("item", "The item of the answer that the text belongs to; `null` if the provider has none."),
    ("judge", "The agent that closes a debate; `null` if there is none."),
    ("kind", "Which kind it is."),
    ("label", "A name for the version."),
    ("lastMessageAt", "When the last message was posted; `null` if there is none."),
    ("last_error", "The last failure; `null` if there was none."),
    ("last_message", "The newest message; `null` if there is none."),
    ("last_used_at", "When it was last used; `null` if it was not."),
    ("level", "Whether it is an error or a warning."),
    ("license", "The license of the skill."),
    ("limit", "The limit."),
    ("limit_usd", "The limit in US dollars."),
    ("limits", "Limits below the server's."),
    ("lines", "The lines of output, oldest first."),
    ("listing", "What the server offers; `null` if the test failed."),
    ("max_messages", "How many runs a person's message may cause."),
    ("max_rounds", "How many follow-up rounds, or turns of the moderator, a person's message may cause."),
    ("mcp", "Whether agents can use MCP servers."),
    ("mcpServers", "The servers by name."),
    ("mcp_servers", "The names of MCP servers."),
    ("media_type", "The media type, such as `image/png`."),
    ("memories", "The notes."),
    ("memory_entries", "How many entries the agent's memory has."),
    ("mentions", "The agents that were asked; all if it is empty."),
    ("message", "The message."),
    ("message_id", "The id of the message."),
    ("messages", "The messages."),
    ("meta", "Page, page size and total."),
    ("metadata", "Further fields of the skill's `SKILL.md`."),
    ("millis", "How long it took in milliseconds."),
    ("model", "The model; `null` for the provider's default."),
    ("modelConfig", "The settings of the model."),
    ("model_options", "How a model API is called; for providers that call one directly."),
    ("moderator", "The agent that decides who speaks; `null` if there is none."),
    ("modified_at", "When it was last written."),
    ("name", "The name."),
    ("network", "Which hosts programs in the project may reach."),
    ("next", "Send it to get the next page; `null` on the last page."),
    ("noise_lines", "Lines of the server's output that are not part of the protocol."),
    ("note", "Why it was changed."),
    ("object", "The kind of object that was changed."),
    ("offered", "In how many runs an agent had it."),
    ("ok", "Whether the test succeeded."),
    ("on_disconnect", "What happens to the run when the client disconnects."),
    ("open_world", "Whether the tool talks to the outside."),
    ("outcome", "What happened to the server."),
    ("output_schema", "The schema of the tool's structured result, if it has one."),
    ("output_tokens", "Tokens that the model wrote."),
    ("parameters", "The parameters of the skill."),
    ("parent_id", "The run whose agent started this one; absent for a run that a message started."),
    ("parent_run_id", "The run whose agent opened this room for another agent; absent for a room of people."),
    ("parts", "The parts of the answer, in order."),
    ("path", "The path."),
    ("period", "How often the budget starts again."),
    ("policy", "Who answers, and what happens while the room is busy."),
    ("priority", "Agents with a higher priority speak earlier."),
    ("problem", "Why it cannot be used; `null` if it can."),
    ("process_id", "The id of the server's process; `null` if none runs."),
    ("project", "The `.mcp.json` of the room's folder; `null` if there is none."),
    ("project_id", "The project of the room; `null` if it has none."),
    ("projects", "The projects."),
    ("proposal_id", "The id of the proposal; `null` if there is none."),
    ("protocol_version", "The version of MCP that was agreed on."),
    ("provider", "The provider."),
    ("providers", "The providers."),
    ("quarantined", "Tools that cannot be used, with the reason."),
    ("read_only", "Whether the tool only reads."),
    ("reason", "The reason."),
    ("receipt", "What was stopped, and whether all of it has ended."),
    ("remember", "What is remembered for later calls."),
    ("remembered", "The remembered decisions."),
    ("required", "Whether a value must be given."),
    ("resets_at", "When the budget starts again; `null` if it does not."),
    ("response_text", "The whole text of the answer."),
    ("restarts", "How often the server was restarted."),
    ("result", "The result."),
    ("review", "What an imported skill asks for; `null` if nothing is left to accept."),
    ("revoked_at", "When it was revoked; `null` if it is valid."),
    ("role", "The role."),
    ("room", "The room."),
    ("roomId", "The id of the room."),
    ("room_id", "The id of the room; `null` if there is none."),
    ("room_name", "The name of the room."),
    ("rooms", "The rooms."),
    ("root_id", "The first run of the tree; absent for that run itself."),
    ("runId", "The id of the run."),
    ("run_id", "The id of the run; `null` if it belongs to none."),
    ("run_tools", "When tool calls are executed."),
    ("runs", "The runs, or how many there were."),
    ("sandbox", "Which sandbox the project uses."),
    ("scope", "What it applies to."),
    ("scopes", "What a token may do."),
    ("score", "From 1, bad, to 5, good."),
    ("seed", "Decides the order of agents with equal priority, together with the message."),
    ("seq", "The position in the room's journal."),
    ("server", "The name and version that the server reports."),
    ("servers", "The MCP servers."),
    ("session", "The session."),
    ("session_id", "The provider's own session."),
    ("set", "Whether the variable has a value."),
    ("skill", "The skill."),
    ("skills", "The skills, or whether they are supported."),
    ("source", "Where it comes from."),
    ("spent_usd", "What was spent in the current period, in US dollars."),
    ("started_at", "When it started; `null` before that."),
    ("state", "The state."),
    ("status", "The status."),
    ("stderr", "The last lines of the program's error output."),
    ("stopped", "How many were cancelled or interrupted."),
    ("streamId", "The id of the message's stream."),
    ("stream_id", "The id of the answer's message."),
    ("structured", "The structured result; `null` if there is none."),
    ("system_prompt", "What the agent is told about itself."),
    ("text", "The text."),
    ("thinking", "How much the model thinks, or whether thinking is shown."),
    ("thinking_text", "The whole thinking of the answer."),
    ("thread_id", "The id of the thread."),
    ("tier", "Where the server is configured."),
    ("title", "The title."),
    ("to", "The end of the range."),
    ("tokens", "The tokens."),
    ("tool", "The name of the tool."),
    ("toolConfig", "The settings of the tools."),
    ("tool_calling", "How the model requests a tool call."),
    ("tool_use_id", "The id of the tool call."),
    ("tools", "The tools."),
    ("total", "The sum."),
    ("transparent", "Whether what the agent says makes nobody react."),
    ("transport", "How the server is reached."),
    ("trusted_at", "When the file was trusted; `null` if it is not."),
    ("type", "Which kind it is."),
    ("unattended_rounds", "How many follow-up rounds agents may start after that time, while nobody is there."),
    ("unfinished_runs", "How many runs wait or execute."),
    ("updatedAt", "When it was last changed."),
    ("updated_at", "When it was last changed; `null` if that is not known."),
    ("uploads", "The files."),
    ("uptime_ms", "How long the server has run, in milliseconds."),
    ("uri", "The URI of the resource."),
    ("url", "The address."),
    ("usage", "Tokens that were used."),
    ("user", "The user."),
    ("user_id", "The id of the user; `null` if it is not known."),
    ("user_name", "The name of the user; `null` if it is not known."),
    ("value", "The value."),
    ("variables", "The variables that the settings refer to."),
    ("verdict", "Which decision the tool policy makes."),
    ("version", "The version."),
    ("versions", "The versions, newest first."),
    ("when_busy", "What happens to a message while agents answer."),
    ("workspace", "The workspace."),
];

pub(super) fn describe(document: &mut Value) {
    if let Some(schemas) = document.pointer_mut("/components/schemas") {
        describe_fields(schemas);
    }
    for (path, item) in document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten() {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(|parameter| describe_parameter(parameter, path));
        }
    }
}

fn meaning(name: &str) -> Option<&'static str> {
    FIELDS.binary_search_by_key(&name, |(field, _)| field).ok().map(|index| FIELDS[index].1)
}

fn describe_fields(value: &mut Value) {
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if let (Some(property), Some(meaning)) = (property.as_object_mut(), meaning(name)) {
                property.entry("description").or_insert_with(|| meaning.into());
            }
        }
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(describe_fields),
        Value::Array(entries) => entries.iter_mut().for_each(describe_fields),
        _ => {}
    }
}

fn describe_parameter(parameter: &mut Value, path: &str) {
    let is_described = parameter.get("description").is_some() || parameter.get("$ref").is_some();
    let Some(name) = parameter.get("name").and_then(Value::as_str).filter(|_| !is_described) else { return };
    let about = match parameter.get("in").and_then(Value::as_str) {
        Some("path") => in_path(name, path),
        _ => meaning(name).unwrap_or_default().to_owned(),
    };
    if !about.is_empty() {
        parameter["description"] = about.into();
    }
}

/// `id` in `/api/rooms/{id}` is the id of the room.
fn in_path(name: &str, path: &str) -> String {
    let before = path.split_once(&format!("/{{{name}}}")).map_or("", |(before, _)| before);
    let collection = before.rsplit('/').next().unwrap_or_default();
    let one = match collection {
        "files" => "file; slashes are encoded as `%2F`".to_owned(),
        "mcp-servers" => "MCP server".to_owned(),
        other => other.strip_suffix('s').unwrap_or(other).replace('-', " "),
    };
    match name {
        "version" => "The number of the version.".to_owned(),
        "id" | "name" | "path" => format!("The {name} of the {one}."),
        _ => format!("The id of the {name}."),
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, in_path};

    #[test]
    fn the_table_is_sorted() {
        assert!(FIELDS.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_part_of_a_path_is_named_after_its_collection() {
        assert_eq!(in_path("id", "/api/rooms/{id}/messages"), "The id of the room.");
        assert_eq!(in_path("name", "/api/mcp-servers/{name}"), "The name of the MCP server.");
        assert_eq!(in_path("approval", "/api/runs/{id}/approvals/{approval}"), "The id of the approval.");
    }
}
