//! The tools. `definitions` has their names and schemas; the other files implement them with the engine's commands.
//! Failures are results that a model can act on; only an unknown tool is a protocol error.

mod agents;
mod arguments;
mod definitions;
mod rooms;
mod runs;
mod skills;

use crate::handler::McpRequestContext;
pub use arguments::McpToolError;
use arguments::parse_arguments;
pub use definitions::is_quick;
use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, Tool},
};
use serde_json::Value;

/// Lists the tools. The description of `run_agent` names the available agents.
pub async fn list(ctx: &McpRequestContext<'_>) -> Result<ListToolsResult, ErrorData> {
    let mut tools: Vec<Tool> = definitions::all().cloned().collect();
    if let Ok(agents) = ctx.agents().await
        && let Some(tool) = tools.iter_mut().find(|tool| tool.name == definitions::RUN_AGENT)
    {
        let about = tool.description.as_deref().unwrap_or_default();
        tool.description = Some(format!("{about} {}", agents::describe(&agents)).into());
    }
    Ok(ListToolsResult::with_all_items(tools))
}

pub fn get(name: &str) -> Option<Tool> {
    definitions::all().find(|tool| tool.name == name).cloned()
}

pub async fn call(ctx: &McpRequestContext<'_>, request: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let given = request.arguments.unwrap_or_default();
    let outcome = match &*request.name {
        "list_agents" => parse_and_run(parse_arguments(given), |args| agents::list(ctx, args)).await,
        definitions::RUN_AGENT => parse_and_run(parse_arguments(given), |args| runs::run_agent(ctx, args)).await,
        "wait_for_run" => parse_and_run(parse_arguments(given), |args| runs::wait_for_run(ctx, args)).await,
        "cancel_run" => parse_and_run(parse_arguments(given), |args| runs::cancel_run(ctx, args)).await,
        "list_approvals" => parse_and_run(parse_arguments(given), |args| runs::list_approvals(ctx, args)).await,
        "answer_approval" => parse_and_run(parse_arguments(given), |args| runs::answer_approval(ctx, args)).await,
        "list_rooms" => parse_and_run(parse_arguments(given), |args| rooms::list(ctx, args)).await,
        "read_room" => parse_and_run(parse_arguments(given), |args| rooms::read(ctx, args)).await,
        "post_message" => parse_and_run(parse_arguments(given), |args| rooms::post(ctx, args)).await,
        "list_skills" => parse_and_run(parse_arguments(given), |args| skills::list(ctx, args)).await,
        "get_skill" => parse_and_run(parse_arguments(given), |args| skills::get(ctx, args)).await,
        unknown => {
            let names: Vec<&str> = definitions::all().map(|tool| &*tool.name).collect();
            let why = format!("unknown tool {unknown:?}; available: {}", names.join(", "));
            return Err(ErrorData::invalid_params(why, None));
        }
    };
    Ok(CallToolResponse::Complete(match outcome {
        Ok(value) => CallToolResult::structured(value),
        Err(McpToolError(why)) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }))
}

async fn parse_and_run<T>(
    arguments: Result<T, McpToolError>,
    carry_out: impl AsyncFnOnce(T) -> Result<Value, McpToolError>,
) -> Result<Value, McpToolError> {
    carry_out(arguments?).await
}

#[cfg(test)]
mod tests {
    use super::definitions;

    #[test]
    fn every_tool_is_fully_described() {
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
    fn only_read_only_tools_are_quick() {
        for tool in definitions::all().filter(|tool| definitions::is_quick(&tool.name)) {
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!(hints.read_only_hint, Some(true), "{} may be dropped at any point", tool.name);
            // The direct path does not compare headers with arguments.
            assert!(!serde_json::to_string(&tool.input_schema).unwrap().contains("x-mcp-header"), "{}", tool.name);
        }
        assert!(definitions::is_quick("list_agents") && !definitions::is_quick("wait_for_run"));
        assert!(!definitions::is_quick("no_such_tool"));
    }
}
