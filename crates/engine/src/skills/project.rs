//! The skills of a project's own folders. They are used once a person has trusted exactly this content: a run gets them as
//! they were read for the check, not as they may be a moment later.

use crate::{
    Engine,
    mcp_servers::RunNotice,
    workspace_trust::{ContentTrust, TrustSubject},
};
use domain::{
    ids::RoomId,
    owner::Owner,
    skill::{FindingLevel, document},
};
use store::StoreError;
use workbench::skills::{
    FilledSkill, ProjectSkill, ProjectSkills, SkillBundle, SkillBundleError, has_project_skills, read_project_skills,
};

/// The skills in the folder of a room, and whether they are trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkspaceSkills {
    /// Of all skills together, if they can be read.
    pub digest: Option<[u8; 32]>,
    pub skills: Vec<ProjectSkill>,
    pub state: ContentTrust,
}

impl Engine {
    /// Whether the folder of a room may have skills of its own. Cheap.
    pub(crate) async fn may_have_project_skills(&self, owner: &Owner, room: RoomId) -> bool {
        let Ok(folder) = self.room_folder(owner, room).await else { return false };
        tokio::task::spawn_blocking(move || has_project_skills(&folder)).await.unwrap_or(true)
    }

    /// Reads the skills in the folder of a room, with their trust.
    pub(crate) async fn workspace_skills(&self, owner: &Owner, room: RoomId) -> Result<WorkspaceSkills, StoreError> {
        let folder = self.room_folder(owner, room).await?;
        let path = folder.clone();
        let read = tokio::task::spawn_blocking(move || read_project_skills(&path)).await;
        let read = read.map_err(|error| error.to_string()).and_then(|read| read.map_err(|error| error.to_string()));
        let bare = |state| WorkspaceSkills { digest: None, skills: Vec::new(), state };
        Ok(match read {
            Err(why) => bare(ContentTrust::Unreadable(why)),
            Ok(None) => bare(ContentTrust::None),
            Ok(Some(ProjectSkills { skills, digest })) => {
                let trusted = self.trusted_content(owner, &folder, TrustSubject::Skills).await?;
                WorkspaceSkills { digest: Some(digest), skills, state: ContentTrust::of(&digest, trusted) }
            }
        })
    }

    /// The trusted skills of a room's folder, without those that the agent has by name, and what to tell in the room.
    pub(super) async fn project_skills_for_run(
        &self,
        owner: &Owner,
        room: RoomId,
        named: &[String],
    ) -> Result<(Vec<FilledSkill>, Vec<RunNotice>), StoreError> {
        let WorkspaceSkills { skills, state, .. } = self.workspace_skills(owner, room).await?;
        let notice = |status, message| RunNotice { status, message };
        match state {
            ContentTrust::None => Ok((Vec::new(), Vec::new())),
            ContentTrust::Unreadable(why) => {
                let message = format!("the skills in this folder are not used: {why}");
                Ok((Vec::new(), vec![notice("skill_unreadable", message)]))
            }
            ContentTrust::Untrusted => {
                let paths: Vec<&str> = skills.iter().map(|skill| skill.path.as_str()).collect();
                let message = format!(
                    "the skills in this folder are not trusted, so Greenroom does not give them to agents: {}. Review them \
                     and trust them with /api/rooms/ROOM/skill-trust",
                    paths.join(", ")
                );
                Ok((Vec::new(), vec![notice("skills_untrusted", message)]))
            }
            ContentTrust::Trusted(_) => {
                let (mut usable, mut notices) = (Vec::new(), Vec::new());
                for skill in skills.into_iter().filter(|skill| !named.contains(&skill.name)) {
                    match filled(&skill) {
                        Ok(filled) => usable.push(filled),
                        Err(why) => {
                            let message = format!("the skill {} is not used: {why}", skill.path);
                            notices.push(notice("skill_unreadable", message));
                        }
                    }
                }
                Ok((usable, notices))
            }
        }
    }
}

/// The skill as programs get it, or why it cannot be used. What it asks for beyond Agent Skills is left out: tools that it
/// allows, MCP servers, hooks.
pub(crate) fn filled(skill: &ProjectSkill) -> Result<FilledSkill, String> {
    let SkillBundle { document: text, files, .. } =
        skill.bundle.as_ref().map_err(|SkillBundleError(why)| why.clone())?;
    let parsed = document::parse(text, Some(&skill.name));
    let error = parsed.findings.iter().find(|finding| finding.level == FindingLevel::Error);
    match (parsed.skill, error) {
        (Some(spec), None) => Ok(FilledSkill {
            document: spec.document(&spec.body, document::Audience::Agents),
            name: skill.name.parse().map_err(|error| format!("{error}"))?,
            files: files.clone(),
        }),
        (_, Some(error)) => Err(error.message.clone()),
        (None, None) => Err("its SKILL.md cannot be read".to_owned()),
    }
}
