//! Skills as prompts, with their parameters as arguments, and completions for arguments.

use crate::{handler::McpRequestContext, resources::store_failure};
use domain::skill::{Parameter, ParameterKind, ParameterValue, ParameterValues, Skill, SkillName, fill_placeholders};
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Reference, Role,
    },
};

/// The maximum of the protocol.
const MAX_COMPLETIONS: usize = CompletionInfo::MAX_VALUES;

pub async fn list(ctx: &McpRequestContext<'_>) -> Result<ListPromptsResult, ErrorData> {
    let skills = ctx.shared.engine.queries().skills(&ctx.actor.workspace).await.map_err(store_failure)?;
    let prompt = |skill: &Skill| {
        let spec = &skill.spec;
        let arguments: Vec<PromptArgument> = spec.parameters.iter().map(argument).collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        Prompt::new(spec.name.as_str(), Some(spec.description.as_str()), arguments).with_title(spec.title())
    };
    Ok(ListPromptsResult::with_all_items(skills.iter().map(prompt).collect()))
}

fn argument(parameter: &Parameter) -> PromptArgument {
    let mut about = parameter.description.clone().unwrap_or_default();
    if !parameter.choices.is_empty() {
        about = format!("{about} One of: {}.", parameter.choices.join(", ")).trim().to_owned();
    }
    let argument =
        PromptArgument::new(&parameter.name).with_required(parameter.required && parameter.default.is_none());
    if about.is_empty() { argument } else { argument.with_description(about) }
}

pub async fn get(ctx: &McpRequestContext<'_>, request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let spec = find(ctx, &request.name).await?.spec;
    let mut given = ParameterValues::new();
    for (name, value) in request.arguments.unwrap_or_default() {
        let text = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let kind = spec.parameters.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.kind);
        given.insert(name, value_of(kind, text));
    }
    let values =
        spec.resolve_parameters(&[&given]).map_err(|trouble| ErrorData::invalid_params(trouble.to_string(), None))?;
    let message = PromptMessage::new_text(Role::User, fill_placeholders(&spec.body, &values));
    Ok(GetPromptResponse::Complete(GetPromptResult::new(vec![message]).with_description(spec.description)))
}

/// Prompt arguments are strings in the protocol; this converts them to the parameter's type.
fn value_of(kind: Option<ParameterKind>, text: String) -> ParameterValue {
    match kind {
        Some(ParameterKind::Boolean) => text.parse().map_or(ParameterValue::Text(text), ParameterValue::Boolean),
        Some(ParameterKind::Number) => text.parse().map_or(ParameterValue::Text(text), ParameterValue::Number),
        _ => ParameterValue::Text(text),
    }
}

async fn find(ctx: &McpRequestContext<'_>, name: &str) -> Result<Skill, ErrorData> {
    let missing = || ErrorData::invalid_params("unknown prompt; prompts/list shows the available prompts", None);
    let name: SkillName = name.parse().map_err(|_| missing())?;
    match ctx.shared.engine.queries().skill(&ctx.actor.workspace, &name).await {
        Err(store::StoreError::NotFound) => Err(missing()),
        found => found.map_err(store_failure),
    }
}

/// Completes choices of a skill's parameter, skill names and room ids.
pub async fn complete(
    ctx: &McpRequestContext<'_>,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let queries = ctx.shared.engine.queries();
    let wanted = request.argument;
    let all: Vec<String> = match &request.r#ref {
        Reference::Prompt(prompt) => {
            let skill = find(ctx, &prompt.name).await?;
            let parameter = skill.spec.parameters.into_iter().find(|parameter| parameter.name == wanted.name);
            parameter.map(|parameter| parameter.choices).unwrap_or_default()
        }
        Reference::Resource(resource) => match (resource.uri.as_str(), wanted.name.as_str()) {
            (uri, "name") if uri.starts_with("greenroom://skills/") => {
                let skills = queries.skills(&ctx.actor.workspace).await.map_err(store_failure)?;
                skills.into_iter().map(|skill| skill.spec.name.to_string()).collect()
            }
            (uri, "id") if uri.starts_with("greenroom://rooms/") => {
                let rooms = queries.rooms(&ctx.actor.workspace, 1000).await.map_err(store_failure)?;
                rooms.into_iter().map(|summary| summary.room.id.to_string()).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut matching: Vec<String> = all.into_iter().filter(|value| value.starts_with(&wanted.value)).collect();
    let total = matching.len();
    matching.truncate(MAX_COMPLETIONS);
    let completions = CompletionInfo::with_pagination(matching, Some(total as u32), total > MAX_COMPLETIONS);
    completions.map(CompleteResult::new).map_err(|why| ErrorData::internal_error(why, None))
}
