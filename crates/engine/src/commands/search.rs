//! Searches a workspace by words: the names of rooms, agents and files, and the texts of messages.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    message::Author,
    owner::Owner,
    permission::Permission,
    search::{SearchQuery, Snippet},
    time::Timestamp,
};
use std::fmt::Display;

/// What to look in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchScope {
    pub messages: bool,
    pub rooms: bool,
    pub agents: bool,
    pub files: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchHitKind {
    Message,
    Room,
    Agent,
    File,
}

/// Something that was found.
#[derive(Debug, Clone)]
pub struct SearchHit {
    pub kind: SearchHitKind,
    pub id: String,
    pub room_id: Option<String>,
    pub seq: Option<u64>,
    /// The name of the room, the agent or the file.
    pub title: String,
    /// Who wrote the message.
    pub author: Option<Author>,
    pub snippet: Snippet,
    pub score: f64,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct SearchPage {
    pub hits: Vec<SearchHit>,
    /// Where the next page of messages begins.
    pub next: Option<i64>,
}

/// Names that are compared, newest first. Names are few, so they need no index.
const MAX_ROOMS: u32 = 5000;
const MAX_FILES: u32 = 1000;
/// Names of one kind that are returned.
const MAX_NAMES: usize = 20;

impl Engine {
    /// Searches what the actor may read. Names are on the first page, the best ones first; then messages, newest first.
    pub async fn search(
        &self,
        actor: &Actor,
        query: &SearchQuery,
        scope: SearchScope,
        below: Option<i64>,
        limit: u32,
    ) -> Result<SearchPage, EngineError> {
        let owner = actor.require(Permission::Read)?;
        if query.is_empty() {
            return Ok(SearchPage { hits: Vec::new(), next: None });
        }
        let mut hits = match below {
            None => self.search_names(owner, query, scope).await?,
            Some(_) => Vec::new(),
        };
        let mut next = None;
        if scope.messages {
            let found = self.store().search_messages(owner, query, below, limit).await?;
            next = found.last().filter(|_| found.len() == limit as usize).map(|found| found.entry);
            hits.extend(found.into_iter().map(|found| SearchHit {
                kind: SearchHitKind::Message,
                id: found.message.id.to_string(),
                room_id: Some(found.message.room_id.to_string()),
                seq: Some(found.message.seq),
                title: found.room_name,
                snippet: query.snippet(&found.message.text),
                // The index has cut long texts in the same way, so every word is there.
                score: query.score(&found.message.text).unwrap_or_default(),
                author: Some(found.message.author),
                created_at: found.message.created_at,
            }));
        }
        Ok(SearchPage { hits, next })
    }

    async fn search_names(
        &self,
        owner: &Owner,
        query: &SearchQuery,
        scope: SearchScope,
    ) -> Result<Vec<SearchHit>, EngineError> {
        let mut hits = Vec::new();
        if scope.rooms {
            let rooms = self.store().room_names(owner, MAX_ROOMS).await?;
            let found = rooms.into_iter().filter_map(|(id, name, at)| {
                let hit = name_hit(query, SearchHitKind::Room, &id, &name, at)?;
                Some(SearchHit { room_id: Some(id.to_string()), ..hit })
            });
            hits.extend(best(found));
        }
        if scope.agents {
            let agents = self.store().agents(owner).await?.into_iter();
            hits.extend(best(agents.filter_map(|agent| {
                name_hit(query, SearchHitKind::Agent, &agent.id, agent.spec.name.as_str(), agent.created_at)
            })));
        }
        if scope.files {
            let files = self.store().uploads(owner, None, MAX_FILES).await?.into_iter();
            hits.extend(best(files.filter_map(|file| {
                name_hit(query, SearchHitKind::File, &file.id, file.name.as_str(), file.created_at)
            })));
        }
        Ok(hits)
    }
}

fn name_hit(
    query: &SearchQuery,
    kind: SearchHitKind,
    id: &dyn Display,
    name: &str,
    created_at: Timestamp,
) -> Option<SearchHit> {
    let score = query.score(name)?;
    let (id, title, snippet) = (id.to_string(), name.to_owned(), query.snippet(name));
    Some(SearchHit { kind, id, room_id: None, seq: None, title, author: None, snippet, score, created_at })
}

/// The best ones first; among equals those that came first stay first.
fn best(hits: impl Iterator<Item = SearchHit>) -> Vec<SearchHit> {
    let mut hits: Vec<SearchHit> = hits.collect();
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    hits.truncate(MAX_NAMES);
    hits
}
