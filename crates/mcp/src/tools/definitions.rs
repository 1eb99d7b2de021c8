//! The name, input and output of each tool. Schemas are written out, in the form that every client and model vendor
//! accepts.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

pub const RUN_AGENT: &str = "run_agent";
pub const DEFAULT_WAIT: u64 = 300;
pub const MAX_WAIT: u64 = 3600;
pub const MAX_MESSAGES: u64 = 200;

struct ToolDefinition {
    tool: Tool,
    is_quick: bool,
}

static ALL: LazyLock<Vec<ToolDefinition>> = LazyLock::new(|| {
    vec![
        tool("list_agents", "List agents", "Lists the agents, with their provider and model.", read_only_hints())
            .input([])
            .output(&["agents"], [("agents", list("The agents."))])
            .quick(),
        tool(
            RUN_AGENT,
            "Run an agent",
            "Sends a message to an agent and waits for its answer. Without `room` it creates a new room; with it the \
             conversation continues there. A run that takes longer than `wait_seconds`, or waits for an approval, is \
             returned unfinished: `next` says what to do.",
            write_hints().open_world(true),
        )
        .input([
            required("agent", text("The agent's name or id.")),
            required("message", text("The message to the agent.")),
            optional("room", text("The id of a room to continue in.")),
            optional("wait", json!({"type": "boolean", "description": "false: do not wait.", "default": true})),
            optional("wait_seconds", wait()),
            optional(
                "on_disconnect",
                json!({"type": "string", "enum": ["continue", "cancel"], "default": "continue",
                       "description": "What happens to the run when this request is cancelled or disconnects."}),
            ),
        ])
        .output(RUN_REQUIRED_FIELDS, run_fields()),
        tool(
            "wait_for_run",
            "Wait for a run",
            "Waits until a run has ended or waits for an approval, at most `wait_seconds`. Returns its answer so far.",
            read_only_hints(),
        )
        .input([required("run_id", text("The run's id.")), optional("wait_seconds", wait())])
        .output(RUN_REQUIRED_FIELDS, run_fields()),
        tool(
            "cancel_run",
            "Cancel a run",
            "Cancels a run and returns when it has stopped. Its answer so far is kept.",
            write_hints().destructive(true).idempotent(true),
        )
        .input([required("run_id", text("The run's id."))])
        .output(
            &["run_id", "status"],
            [
                ("run_id", text("The run's id.")),
                ("status", text("The final status: cancelled, or the earlier one if the run had already ended.")),
                ("receipt", object("How the run was stopped.")),
            ],
        ),
        tool(
            "list_approvals",
            "List approvals",
            "Lists the tool calls and questions of all rooms that wait for `answer_approval`, oldest first.",
            read_only_hints(),
        )
        .input([])
        .output(&["approvals"], [("approvals", list("The approvals, each with its run, input and expiry."))])
        .quick(),
        tool(
            "answer_approval",
            "Answer an approval",
            "Allows or denies a tool call that waits for approval, or answers an agent's question.",
            write_hints(),
        )
        .input([
            required("run_id", text("The run's id.")),
            required("approval_id", text("The approval's id, as returned by list_approvals, run_agent or wait_for_run.")),
            required("decision", json!({"type": "string", "enum": ["allow", "deny"], "description": "Allow or deny."})),
            optional(
                "input",
                object("Run the tool with this input instead. For a question, the answer: {\"answer\": \"…\"}."),
            ),
            optional(
                "remember",
                json!({"type": "string", "enum": ["exact", "pattern", "tool"],
                       "description": "Always allow such calls for this agent in this room: with exactly this input, that \
                                       match the pattern of the request, or the whole tool. Without it, only this call."}),
            ),
        ])
        .output(
            &["run_id", "status"],
            [
                ("run_id", text("The run's id.")),
                ("status", text("The run's status now.")),
                ("next", text("What to do next.")),
            ],
        ),
        tool("list_rooms", "List rooms", "Lists rooms, the most recently active first.", read_only_hints())
            .input([optional("limit", count(MAX_MESSAGES, 50, "Maximum number of rooms."))])
            .output(&["rooms"], [("rooms", list("The rooms."))])
            .quick(),
        tool(
            "read_room",
            "Read a room",
            "Returns messages of a room in chronological order: the newest ones, or those before `before`.",
            read_only_hints(),
        )
        .input([
            required("room", text("The room's id.")),
            optional(
                "before",
                json!({"type": "integer", "minimum": 1, "description": "Only messages before this seq."}),
            ),
            optional("limit", count(MAX_MESSAGES, 50, "Maximum number of messages.")),
        ])
        .output(
            &["room_id", "name", "head", "messages", "more"],
            [
                ("room_id", text("The room's id.")),
                ("name", text("The room's name.")),
                ("head", json!({"type": "integer", "description": "The newest seq of the room's journal."})),
                ("messages", list("The messages.")),
                ("more", json!({"type": "boolean", "description": "true: there are earlier messages; use `before`."})),
            ],
        )
        .quick(),
        tool(
            "post_message",
            "Post a message",
            "Posts a message in a room. The room's agents answer; `wait_for_run` waits for one of the runs.",
            write_hints().open_world(true),
        )
        .input([
            required("room", text("The room's id.")),
            required("text", text("The text of the message.")),
            optional(
                "when_busy",
                json!({"type": "string", "enum": ["interrupt", "enqueue", "reject", "steer"],
                       "description": "What to do when an agent is still answering. Default: the room's policy."}),
            ),
            optional(
                "mentions",
                json!({"type": "array", "items": {"type": "string"},
                       "description": "Names or ids of the agents that should answer. Default: those that the text names with @, or all of them."}),
            ),
        ])
        .output(
            &["message_id", "seq", "runs"],
            [
                ("message_id", text("The message's id.")),
                ("seq", json!({"type": "integer", "description": "The message's seq in the room's journal."})),
                ("runs", list("The runs that answer the message.")),
            ],
        ),
        tool(
            "list_skills",
            "List skills",
            "Lists the skills, with their descriptions and parameters.",
            read_only_hints(),
        )
        .input([])
        .output(&["skills"], [("skills", list("The skills."))])
        .quick(),
        tool("get_skill", "Get a skill", "Returns a skill's document and the names of its files.", read_only_hints())
            .input([required("name", text("The skill's name."))])
            .output(
                &["name", "document", "files"],
                [
                    ("name", text("The skill's name.")),
                    ("document", text("Its SKILL.md.")),
                    ("files", list("Its files, each with the URI of a resource.")),
                ],
            )
            .quick(),
    ]
});

pub fn all() -> impl Iterator<Item = &'static Tool> {
    ALL.iter().map(|definition| &definition.tool)
}

/// Returns whether a tool does not wait, sends nothing before its answer, and may be dropped at any point.
pub fn is_quick(name: &str) -> bool {
    ALL.iter().any(|definition| definition.is_quick && definition.tool.name == name)
}

impl ToolDefinition {
    fn quick(self) -> Self {
        Self { is_quick: true, ..self }
    }
}

struct ToolDraft(Tool);

struct SchemaProperty {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

fn tool(name: &'static str, title: &str, about: &'static str, hints: ToolAnnotations) -> ToolDraft {
    ToolDraft(Tool::new(name, about, Arc::new(JsonObject::new())).with_title(title).with_annotations(hints))
}

impl ToolDraft {
    fn input<const N: usize>(mut self, properties: [SchemaProperty; N]) -> Self {
        let names = properties.iter().filter(|property| property.is_required).map(|property| property.name);
        let names: Vec<&str> = names.collect();
        let fields = properties.map(|property| (property.name, property.schema));
        self.0.input_schema = schema(&names, fields);
        self
    }

    /// Allows additional properties, so that the output can be extended later.
    fn output<const N: usize>(self, names: &[&str], fields: [(&str, Value); N]) -> ToolDefinition {
        let mut output = (*schema(names, fields)).clone();
        output.remove("additionalProperties");
        ToolDefinition { tool: self.0.with_raw_output_schema(Arc::new(output)), is_quick: false }
    }
}

fn schema<const N: usize>(names: &[&str], fields: [(&str, Value); N]) -> Arc<JsonObject> {
    let properties: JsonObject = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let entries = [
        ("type", json!("object")),
        ("properties", Value::Object(properties)),
        ("required", json!(names)),
        ("additionalProperties", json!(false)),
    ];
    Arc::new(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn required(name: &'static str, schema: Value) -> SchemaProperty {
    SchemaProperty { name, schema, is_required: true }
}

fn optional(name: &'static str, schema: Value) -> SchemaProperty {
    SchemaProperty { name, schema, is_required: false }
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn object(about: &str) -> Value {
    json!({"type": "object", "description": about})
}

fn list(about: &str) -> Value {
    json!({"type": "array", "items": {"type": "object"}, "description": about})
}

fn count(max: u64, default: u64, about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": max, "default": default, "description": about})
}

fn wait() -> Value {
    count(MAX_WAIT, DEFAULT_WAIT, "How long to wait for the answer, in seconds.")
}

const RUN_REQUIRED_FIELDS: &[&str] = &["run_id", "room_id", "status", "text", "approvals"];

fn run_fields() -> [(&'static str, Value); 8] {
    [
        ("run_id", text("The run's id.")),
        ("room_id", text("The id of the run's room.")),
        (
            "status",
            text(
                "queued, running, waiting_for_approval, waiting_for_quota, completed, failed, cancelled or interrupted.",
            ),
        ),
        ("text", text("The answer so far; complete when the run has ended.")),
        ("approvals", list("Tool calls and questions that wait for `answer_approval`.")),
        ("error", object("Why the run failed.")),
        ("usage", object("Token usage.")),
        ("next", text("What to do next if the run has not ended.")),
    ]
}

fn read_only_hints() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

fn write_hints() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(false)
}
