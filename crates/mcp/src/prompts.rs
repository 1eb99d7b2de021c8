//! Skills as prompts, with their parameters as arguments; and what a client may offer while one is typed.

use crate::{handler::Asking, resources::failed};
use domain::skill::{Given, Parameter, ParameterKind, ParameterValue, Skill, SkillName, fill};
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Reference, Role,
    },
};

/// As many as the protocol lets a server offer.
const OFFERED: usize = CompletionInfo::MAX_VALUES;

pub async fn list(asking: &Asking<'_>) -> Result<ListPromptsResult, ErrorData> {
    let skills = asking.house.engine.store().skills(&asking.owner).await.map_err(failed)?;
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

pub async fn get(asking: &Asking<'_>, request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let spec = find(asking, &request.name).await?.spec;
    let mut given = Given::new();
    for (name, value) in request.arguments.unwrap_or_default() {
        let text = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let kind = spec.parameters.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.kind);
        given.insert(name, value_of(kind, text));
    }
    let values = spec.values(&[&given]).map_err(|trouble| ErrorData::invalid_params(trouble.to_string(), None))?;
    let message = PromptMessage::new_text(Role::User, fill(&spec.body, &values));
    Ok(GetPromptResponse::Complete(GetPromptResult::new(vec![message]).with_description(spec.description)))
}

/// Arguments of prompts are texts, whatever they mean.
fn value_of(kind: Option<ParameterKind>, text: String) -> ParameterValue {
    match kind {
        Some(ParameterKind::Boolean) => text.parse().map_or(ParameterValue::Text(text), ParameterValue::Boolean),
        Some(ParameterKind::Number) => text.parse().map_or(ParameterValue::Text(text), ParameterValue::Number),
        _ => ParameterValue::Text(text),
    }
}

async fn find(asking: &Asking<'_>, name: &str) -> Result<Skill, ErrorData> {
    let missing = || ErrorData::invalid_params("there is no such prompt; prompts/list shows which there are", None);
    let name: SkillName = name.parse().map_err(|_| missing())?;
    match asking.house.engine.store().skill(&asking.owner, &name).await {
        Err(store::Error::NotFound) => Err(missing()),
        found => found.map_err(failed),
    }
}

/// Choices of a skill's parameter, names of skills, ids of rooms.
pub async fn complete(asking: &Asking<'_>, request: CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let store = asking.house.engine.store();
    let wanted = request.argument;
    let all: Vec<String> = match &request.r#ref {
        Reference::Prompt(prompt) => {
            let skill = find(asking, &prompt.name).await?;
            let parameter = skill.spec.parameters.into_iter().find(|parameter| parameter.name == wanted.name);
            parameter.map(|parameter| parameter.choices).unwrap_or_default()
        }
        Reference::Resource(resource) => match (resource.uri.as_str(), wanted.name.as_str()) {
            (uri, "name") if uri.starts_with("greenroom://skills/") => {
                let skills = store.skills(&asking.owner).await.map_err(failed)?;
                skills.into_iter().map(|skill| skill.spec.name.to_string()).collect()
            }
            (uri, "id") if uri.starts_with("greenroom://rooms/") => {
                let rooms = store.rooms(&asking.owner, 1000).await.map_err(failed)?;
                rooms.into_iter().map(|summary| summary.room.id.to_string()).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut fitting: Vec<String> = all.into_iter().filter(|value| value.starts_with(&wanted.value)).collect();
    let total = fitting.len();
    fitting.truncate(OFFERED);
    let offered = CompletionInfo::with_pagination(fitting, Some(total as u32), total > OFFERED);
    offered.map(CompleteResult::new).map_err(|why| ErrorData::internal_error(why, None))
}
