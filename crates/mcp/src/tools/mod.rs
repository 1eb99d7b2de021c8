//! The tools. `definitions` says what each is called, takes and gives; the other files carry them out by the engine's commands.
//! What goes wrong is told as a result that a model can act on; only a tool that there is not is an error of the protocol.

mod agents;
mod arguments;
mod definitions;
mod rooms;
mod runs;
mod skills;

use crate::handler::Asking;
pub use arguments::Trouble;
use arguments::read;
pub use definitions::is_quick;
use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, Tool},
};
use serde_json::Value;

/// With the agents that can be asked in the description of the tool that asks one.
pub async fn list(asking: &Asking<'_>) -> Result<ListToolsResult, ErrorData> {
    let mut tools: Vec<Tool> = definitions::all().cloned().collect();
    if let Ok(agents) = asking.agents().await
        && let Some(tool) = tools.iter_mut().find(|tool| tool.name == definitions::RUN_AGENT)
    {
        let about = tool.description.as_deref().unwrap_or_default();
        tool.description = Some(format!("{about} {}", agents::who(&agents)).into());
    }
    Ok(ListToolsResult::with_all_items(tools))
}

pub fn get(name: &str) -> Option<Tool> {
    definitions::all().find(|tool| tool.name == name).cloned()
}

pub async fn call(asking: &Asking<'_>, request: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let given = request.arguments.unwrap_or_default();
    let outcome = match &*request.name {
        "list_agents" => run(read(given), |none| agents::list(asking, none)).await,
        definitions::RUN_AGENT => run(read(given), |wish| runs::run_agent(asking, wish)).await,
        "wait_for_run" => run(read(given), |wish| runs::wait_for_run(asking, wish)).await,
        "cancel_run" => run(read(given), |wish| runs::cancel_run(asking, wish)).await,
        "answer_approval" => run(read(given), |wish| runs::answer_approval(asking, wish)).await,
        "list_rooms" => run(read(given), |wish| rooms::list(asking, wish)).await,
        "read_room" => run(read(given), |wish| rooms::read(asking, wish)).await,
        "post_message" => run(read(given), |wish| rooms::post(asking, wish)).await,
        "list_skills" => run(read(given), |none| skills::list(asking, none)).await,
        "get_skill" => run(read(given), |wish| skills::get(asking, wish)).await,
        unknown => {
            let names: Vec<&str> = definitions::all().map(|tool| &*tool.name).collect();
            let why = format!("there is no tool {unknown:?}; there are: {}", names.join(", "));
            return Err(ErrorData::invalid_params(why, None));
        }
    };
    Ok(CallToolResponse::Complete(match outcome {
        Ok(value) => CallToolResult::structured(value),
        Err(Trouble(why)) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }))
}

async fn run<T>(
    arguments: Result<T, Trouble>,
    carry_out: impl AsyncFnOnce(T) -> Result<Value, Trouble>,
) -> Result<Value, Trouble> {
    carry_out(arguments?).await
}

#[cfg(test)]
mod tests {
    use super::definitions;

    #[test]
    fn every_tool_is_described_precisely() {
        for tool in definitions::all() {
            let schema = serde_json::to_value(&tool.input_schema).unwrap();
            assert_eq!(
                (&schema["type"], &schema["additionalProperties"]),
                (&"object".into(), &false.into()),
                "{}",
                tool.name
            );
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["type"].is_string(), "{}.{name} has one type", tool.name);
                assert!(property["description"].is_string(), "{}.{name} is described", tool.name);
            }
            assert_eq!(serde_json::to_value(&tool.output_schema).unwrap()["type"], "object", "{}", tool.name);
            assert!(tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint.is_some()), "{}", tool.name);
            assert!(tool.title.is_some() && tool.description.is_some(), "{}", tool.name);
        }
    }

    #[test]
    fn only_what_changes_nothing_is_quick() {
        for tool in definitions::all().filter(|tool| definitions::is_quick(&tool.name)) {
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!(hints.read_only_hint, Some(true), "{} may be dropped half-way", tool.name);
            // A transport that answers directly compares no headers with arguments.
            assert!(!serde_json::to_string(&tool.input_schema).unwrap().contains("x-mcp-header"), "{}", tool.name);
        }
        assert!(definitions::is_quick("list_agents") && !definitions::is_quick("wait_for_run"));
        assert!(!definitions::is_quick("no_such_tool"));
    }
}
