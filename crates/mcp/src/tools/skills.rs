//! The tools for skills: list skills, get a skill.

use super::arguments::{McpToolError, NoArguments, excerpt};
use crate::{handler::McpRequestContext, resources};
use domain::skill::{Skill, SkillName, document::Audience};
use serde::Deserialize;
use serde_json::{Value, json};

pub async fn list(ctx: &McpRequestContext<'_>, _: NoArguments) -> Result<Value, McpToolError> {
    let skills = ctx.shared.engine.queries().skills(&ctx.actor.workspace).await?;
    let shown = |skill: &Skill| {
        let spec = &skill.spec;
        json!({"name": spec.name, "title": spec.title(), "description": spec.description, "version": skill.version,
               "parameters": spec.parameters, "uri": resources::skill_uri(&spec.name)})
    };
    Ok(json!({"skills": skills.iter().map(shown).collect::<Vec<_>>()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetSkillArguments {
    name: String,
}

pub async fn get(ctx: &McpRequestContext<'_>, args: GetSkillArguments) -> Result<Value, McpToolError> {
    let missing =
        || McpToolError(format!("there is no skill {:?}; list_skills shows the available skills", excerpt(&args.name)));
    let name = args.name.parse::<SkillName>().map_err(|_| missing())?;
    let skill = match ctx.shared.engine.queries().skill(&ctx.actor.workspace, &name).await {
        Err(store::StoreError::NotFound) => return Err(missing()),
        found => found?,
    };
    let files: Vec<Value> = skill
        .files
        .iter()
        .map(|file| json!({"path": file.path, "bytes": file.bytes, "uri": resources::skill_file_uri(&name, file.path.as_str())}))
        .collect();
    let document = skill.spec.document(&skill.spec.body, Audience::People);
    Ok(json!({"name": name, "version": skill.version, "document": document, "files": files}))
}
