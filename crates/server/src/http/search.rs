//! Search over messages, and the names of rooms, agents and files.

use crate::{App, auth::Caller, error::Problem, extract::QueryParams};
use axum::{Json, extract::State};
use domain::{
    message::Author,
    search::{MAX_QUERY_CHARS, SearchQuery, Snippet},
    time::Timestamp,
};
use engine::commands::{SearchHit, SearchHitKind, SearchScope};
use serde::{Deserialize, Serialize};

const DEFAULT_LIMIT: u32 = 20;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchParams {
    /// Words that must all be there, in any order; the last one may be the beginning of a word. Case and accents do not
    /// matter. Any text is allowed; one without words finds nothing.
    #[param(max_length = 200)]
    q: String,
    /// Where to look, separated by commas: `messages`, `rooms`, `agents`, `files`. Default: everywhere.
    #[serde(rename = "in")]
    #[param(
        rename = "in",
        example = "messages,rooms",
        pattern = "^(messages|rooms|agents|files)(,(messages|rooms|agents|files))*$"
    )]
    places: Option<String>,
    /// The `next` of the previous page.
    #[param(pattern = "^[0-9]{1,18}$", example = "120")]
    cursor: Option<String>,
    /// Maximum number of messages. The first page has up to 20 names of each kind besides.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct SearchResults {
    /// Names first, the best ones first; then messages, newest first.
    hits: Vec<SearchHitView>,
    /// Send it as `cursor` to get more messages; `null` on the last page.
    next: Option<String>,
}

/// Something that has all words of the query
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = SearchHit)]
pub struct SearchHitView {
    /// What was found.
    kind: SearchHitKind,
    /// The id of the message, the room, the agent or the upload.
    id: String,
    /// The room of a message, or the room itself.
    room_id: Option<String>,
    /// The position of a message in its room.
    seq: Option<u64>,
    /// The name of the room, the agent or the file; for a message, of its room.
    title: String,
    /// Who wrote the message.
    author: Option<Author>,
    /// The part of the text with the words; for a name, the name.
    snippet: Snippet,
    /// How well it fits: 1 if all words are there, less if the last one is only a beginning.
    score: f64,
    /// When it was written or created.
    created_at: Timestamp,
}

impl From<SearchHit> for SearchHitView {
    fn from(hit: SearchHit) -> Self {
        let SearchHit { kind, id, room_id, seq, title, author, snippet, score, created_at } = hit;
        Self { kind, id, room_id, seq, title, author, snippet, score, created_at }
    }
}

/// Search
///
/// Finds messages by their texts, and rooms, agents and files by their names. New messages are found about a second after
/// they were stored.
#[utoipa::path(get, path = "/api/search", tag = "search", params(SearchParams),
               responses((status = 200, body = SearchResults)))]
pub async fn search(
    State(app): State<App>,
    caller: Caller,
    QueryParams(params): QueryParams<SearchParams>,
) -> Result<Json<SearchResults>, Problem> {
    let SearchParams { q, places, cursor, limit } = params;
    if q.chars().count() > MAX_QUERY_CHARS {
        return Err(Problem::invalid(format!("q: at most {MAX_QUERY_CHARS} characters.")));
    }
    let limit = match limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=100 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 100.")),
    };
    let below = cursor.map(|cursor| cursor.parse()).transpose();
    let below = below.map_err(|_| Problem::invalid("cursor: the next of an earlier page."))?;
    let scope = scope(places.as_deref())?;
    let _reading = app.shares.read_page(&caller).await?;
    let page = app.engine.search(&caller, &SearchQuery::parse(&q), scope, below, limit).await?;
    let hits = page.hits.into_iter().map(SearchHitView::from).collect();
    Ok(Json(SearchResults { hits, next: page.next.map(|next| next.to_string()) }))
}

fn scope(places: Option<&str>) -> Result<SearchScope, Problem> {
    let Some(places) = places else {
        return Ok(SearchScope { messages: true, rooms: true, agents: true, files: true });
    };
    let mut scope = SearchScope { messages: false, rooms: false, agents: false, files: false };
    for place in places.split(',').map(str::trim) {
        match place {
            "messages" => scope.messages = true,
            "rooms" => scope.rooms = true,
            "agents" => scope.agents = true,
            "files" => scope.files = true,
            _ => return Err(Problem::invalid("in: a list of messages, rooms, agents and files, separated by commas.")),
        }
    }
    Ok(scope)
}
