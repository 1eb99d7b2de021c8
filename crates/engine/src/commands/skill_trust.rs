//! Trust in the skills of a room's folder.

use crate::{
    Engine, EngineError,
    skills::{WorkspaceSkills, filled},
    workspace_trust::{TrustState, TrustSubject},
};
use domain::{actor::Actor, hex, ids::RoomId, permission::Permission, skill::document, time::Timestamp};
use serde::Serialize;

/// The skills in `.claude/skills` and `.agents/skills` of a room's folder, and whether agents get them.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SkillTrust)]
pub struct SkillTrustView {
    /// Whether agents get the skills.
    pub state: TrustState,
    /// SHA-256 of all skills together, in hex; only exactly this content is trusted.
    pub digest: Option<String>,
    /// When they were trusted; `null` if they are not.
    pub trusted_at: Option<Timestamp>,
    /// Why the skills cannot be read.
    pub problem: Option<String>,
    /// The skills, by name.
    pub skills: Vec<ProjectSkillView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ProjectSkill)]
pub struct ProjectSkillView {
    /// The name of its folder.
    pub name: String,
    /// The path of its folder in the room's folder.
    #[schema(examples(".claude/skills/review"))]
    pub path: String,
    /// When agents should use it; `null` if its `SKILL.md` does not say so.
    pub description: Option<String>,
    /// The whole `SKILL.md`, to be reviewed.
    pub document: Option<String>,
    /// The paths of its other files in its folder.
    pub files: Vec<String>,
    /// Why it could not be used even if it were trusted.
    pub problem: Option<String>,
}

impl Engine {
    pub async fn skill_trust(&self, actor: &Actor, room: RoomId) -> Result<SkillTrustView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        self.store().room(owner, room).await?;
        Ok(view(self.workspace_skills(owner, room).await?))
    }

    /// Trusts the skills. `digest` is that of the content that the person has seen.
    pub async fn trust_skills(&self, actor: &Actor, room: RoomId, digest: &str) -> Result<SkillTrustView, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        self.store().room(owner, room).await?;
        let found = self.workspace_skills(owner, room).await?;
        let content = (&found.state, found.digest);
        let state = self.trust_content(actor, room, TrustSubject::Skills, content, digest).await?;
        Ok(view(WorkspaceSkills { state, ..found }))
    }

    pub async fn distrust_skills(&self, actor: &Actor, room: RoomId) -> Result<(), EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        self.store().room(owner, room).await?;
        self.distrust_content(actor, room, TrustSubject::Skills).await
    }
}

fn view(found: WorkspaceSkills) -> SkillTrustView {
    let (state, trusted_at, problem) = found.state.shown();
    let skills = found.skills.iter().map(|skill| {
        let bundle = skill.bundle.as_ref().ok();
        ProjectSkillView {
            name: skill.name.clone(),
            path: skill.path.clone(),
            description: bundle.and_then(|bundle| document::summary(&bundle.document).0),
            document: bundle.map(|bundle| bundle.document.clone()),
            files: bundle.iter().flat_map(|bundle| &bundle.files).map(|file| file.path.to_string()).collect(),
            problem: filled(skill).err(),
        }
    });
    let digest = found.digest.map(|digest| hex::encode(&digest));
    SkillTrustView { state, digest, trusted_at, problem, skills: skills.collect() }
}
