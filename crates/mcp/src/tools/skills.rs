//! Skills, for those who would rather read one than have it run.

use super::arguments::{Nothing, Trouble, shown};
use crate::{handler::Asking, resources};
use domain::skill::{Skill, SkillName, document::For};
use serde::Deserialize;
use serde_json::{Value, json};

pub async fn list(asking: &Asking<'_>, _: Nothing) -> Result<Value, Trouble> {
    let skills = asking.house.engine.store().skills(&asking.owner).await?;
    let shown = |skill: &Skill| {
        let spec = &skill.spec;
        json!({"name": spec.name, "title": spec.title(), "description": spec.description, "version": skill.version,
               "parameters": spec.parameters, "uri": resources::skill(&spec.name)})
    };
    Ok(json!({"skills": skills.iter().map(shown).collect::<Vec<_>>()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    name: String,
}

pub async fn get(asking: &Asking<'_>, wish: Get) -> Result<Value, Trouble> {
    let missing = || Trouble(format!("there is no skill {:?}; list_skills shows which there are", shown(&wish.name)));
    let name = wish.name.parse::<SkillName>().map_err(|_| missing())?;
    let skill = match asking.house.engine.store().skill(&asking.owner, &name).await {
        Err(store::Error::NotFound) => return Err(missing()),
        found => found?,
    };
    let files: Vec<Value> = skill
        .files
        .iter()
        .map(|file| json!({"path": file.path, "bytes": file.bytes, "uri": resources::skill_file(&name, file.path.as_str())}))
        .collect();
    let document = skill.spec.document(&skill.spec.body, For::People);
    Ok(json!({"name": name, "version": skill.version, "document": document, "files": files}))
}
