//! What each tool is called, takes and gives. Schemas are written out: every client and every model's vendor takes these.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

pub const RUN_AGENT: &str = "run_agent";
pub const DEFAULT_WAIT: u64 = 300;
pub const MAX_WAIT: u64 = 3600;
pub const MAX_MESSAGES: u64 = 200;

struct Definition {
    tool: Tool,
    is_quick: bool,
}

static ALL: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    vec![
        tool("list_agents", "List agents", "The agents that can be asked, with what answers for them.", reads())
            .takes([])
            .gives(&["agents"], [("agents", list("The agents."))])
            .quick(),
        tool(
            RUN_AGENT,
            "Run an agent",
            "Asks an agent and waits for its answer. Without `room` it begins a new room; with it the conversation goes on \
             there. A run that needs longer than `wait_seconds`, or waits for an approval, is returned as it is: `next` says \
             what to do.",
            acts().open_world(true),
        )
        .takes([
            required("agent", text("The agent's name or id.")),
            required("message", text("What to ask.")),
            optional("room", text("The id of a room to go on in.")),
            optional("wait", json!({"type": "boolean", "description": "false: return the run's id at once.", "default": true})),
            optional("wait_seconds", wait()),
            optional(
                "on_disconnect",
                json!({"type": "string", "enum": ["continue", "cancel"], "default": "continue",
                       "description": "What becomes of the run when this request is cancelled or its connection ends."}),
            ),
        ])
        .gives(RUN_NEEDS, run()),
        tool(
            "wait_for_run",
            "Wait for a run",
            "Waits until a run has ended, waits for an approval, or `wait_seconds` have passed, and gives its answer so far.",
            reads(),
        )
        .takes([required("run_id", text("The run's id.")), optional("wait_seconds", wait())])
        .gives(RUN_NEEDS, run()),
        tool(
            "cancel_run",
            "Cancel a run",
            "Stops a run and returns when it has really stopped. What it had said is kept.",
            acts().destructive(true).idempotent(true),
        )
        .takes([required("run_id", text("The run's id."))])
        .gives(
            &["run_id", "status"],
            [
                ("run_id", text("The run's id.")),
                ("status", text("How it ended: cancelled, or as it had ended before.")),
                ("receipt", object("What stopping it took.")),
            ],
        ),
        tool(
            "answer_approval",
            "Answer an approval",
            "Says yes or no to a tool call of a run that waits for it, or answers an agent's question.",
            acts(),
        )
        .takes([
            required("run_id", text("The run's id.")),
            required("approval_id", text("The approval's id, as run_agent or wait_for_run gave it.")),
            required("decision", json!({"type": "string", "enum": ["allow", "deny"], "description": "Yes or no."})),
            optional(
                "input",
                object("Run the tool with this input instead. To a question, the answer: {\"answer\": \"…\"}."),
            ),
            optional(
                "remember",
                json!({"type": "boolean", "default": false,
                       "description": "true: allow this tool to this agent in this room from now on."}),
            ),
        ])
        .gives(
            &["run_id", "status"],
            [("run_id", text("The run's id.")), ("status", text("The run's status now.")), ("next", text("What to do next."))],
        ),
        tool("list_rooms", "List rooms", "The rooms there are, those that moved last first.", reads())
            .takes([optional("limit", count(MAX_MESSAGES, 50, "How many at most."))])
            .gives(&["rooms"], [("rooms", list("The rooms."))])
            .quick(),
        tool(
            "read_room",
            "Read a room",
            "The messages of a room, the newest ones unless `before` says otherwise, in the order in which they were said.",
            reads(),
        )
        .takes([
            required("room", text("The room's id.")),
            optional("before", json!({"type": "integer", "minimum": 1, "description": "Only messages before this seq."})),
            optional("limit", count(MAX_MESSAGES, 50, "How many messages at most.")),
        ])
        .gives(
            &["room_id", "name", "head", "messages", "more"],
            [
                ("room_id", text("The room's id.")),
                ("name", text("The room's name.")),
                ("head", json!({"type": "integer", "description": "How far the room's journal has come."})),
                ("messages", list("The messages.")),
                ("more", json!({"type": "boolean", "description": "There are earlier ones: ask with `before`."})),
            ],
        )
        .quick(),
        tool(
            "post_message",
            "Post a message",
            "Says something in a room. The agents that sit there answer; `wait_for_run` waits for one of them.",
            acts().open_world(true),
        )
        .takes([
            required("room", text("The room's id.")),
            required("text", text("What to say.")),
            optional(
                "when_busy",
                json!({"type": "string", "enum": ["interrupt", "enqueue", "reject", "steer"],
                       "description": "What to do when an agent is still answering there; the room's policy decides otherwise."}),
            ),
            optional(
                "mentions",
                json!({"type": "array", "items": {"type": "string"},
                       "description": "Names or ids of the agents that should answer; all of them when left out."}),
            ),
        ])
        .gives(
            &["message_id", "seq", "runs"],
            [
                ("message_id", text("The message's id.")),
                ("seq", json!({"type": "integer", "description": "Its place in the room's journal."})),
                ("runs", list("The runs that answer it.")),
            ],
        ),
        tool("list_skills", "List skills", "The skills there are, with what they are for and what they take.", reads())
            .takes([])
            .gives(&["skills"], [("skills", list("The skills."))])
            .quick(),
        tool("get_skill", "Get a skill", "A skill's document and the names of its files.", reads())
            .takes([required("name", text("The skill's name."))])
            .gives(
                &["name", "document", "files"],
                [
                    ("name", text("The skill's name.")),
                    ("document", text("Its SKILL.md.")),
                    ("files", list("Its files, each with the address of a resource.")),
                ],
            )
            .quick(),
    ]
});

pub fn all() -> impl Iterator<Item = &'static Tool> {
    ALL.iter().map(|definition| &definition.tool)
}

/// Whether it waits for nobody, says nothing before its answer, and may be dropped half-way.
pub fn is_quick(name: &str) -> bool {
    ALL.iter().any(|definition| definition.is_quick && definition.tool.name == name)
}

impl Definition {
    fn quick(self) -> Self {
        Self { is_quick: true, ..self }
    }
}

struct Draft(Tool);

struct Property {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

fn tool(name: &'static str, title: &str, about: &'static str, hints: ToolAnnotations) -> Draft {
    Draft(Tool::new(name, about, Arc::new(JsonObject::new())).with_title(title).with_annotations(hints))
}

impl Draft {
    fn takes<const N: usize>(mut self, properties: [Property; N]) -> Self {
        let names = properties.iter().filter(|property| property.is_required).map(|property| property.name);
        let names: Vec<&str> = names.collect();
        let fields = properties.map(|property| (property.name, property.schema));
        self.0.input_schema = schema(&names, fields);
        self
    }

    /// What it gives may have more in it one day.
    fn gives<const N: usize>(self, names: &[&str], fields: [(&str, Value); N]) -> Definition {
        let mut output = (*schema(names, fields)).clone();
        output.remove("additionalProperties");
        Definition { tool: self.0.with_raw_output_schema(Arc::new(output)), is_quick: false }
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

fn required(name: &'static str, schema: Value) -> Property {
    Property { name, schema, is_required: true }
}

fn optional(name: &'static str, schema: Value) -> Property {
    Property { name, schema, is_required: false }
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
    count(MAX_WAIT, DEFAULT_WAIT, "How long to wait for the answer.")
}

const RUN_NEEDS: &[&str] = &["run_id", "room_id", "status", "text", "approvals"];

fn run() -> [(&'static str, Value); 8] {
    [
        ("run_id", text("The run's id.")),
        ("room_id", text("The room it answers in.")),
        (
            "status",
            text(
                "queued, running, waiting_for_approval, waiting_for_quota, completed, failed, cancelled or interrupted.",
            ),
        ),
        ("text", text("The answer so far; all of it when the run has ended.")),
        ("approvals", list("Tool calls and questions that wait for `answer_approval`.")),
        ("error", object("Why it failed.")),
        ("usage", object("Tokens it took.")),
        ("next", text("What to do when it has not ended.")),
    ]
}

fn reads() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

fn acts() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(false)
}
