//! Rooms, runs, skills and files as resources. `address` is how each is named; here they are listed and read.

mod address;

pub use address::{Address, room, skill, skill_file};

use crate::handler::Asking;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    ids::{RoomId, RunId},
    message::{Author, Message},
    owner::Owner,
    skill::{FilePath, SkillName, document::For},
};
use engine::commands::WorkplaceEntry;
use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    },
};
use serde_json::{Value, json};

/// A page of the list, and all rooms that are listed.
const PAGE: usize = 100;
const MAX_ROOMS: u32 = 1000;
/// How much of a conversation a resource shows; `read_room` pages through the rest.
const MESSAGES: u32 = 100;
/// How long one text may be, and all of them together.
const MAX_TEXT: usize = 512 * 1024;
const MAX_TEXTS: usize = 1024 * 1024;
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

pub async fn list(asking: &Asking<'_>, page: Option<PaginatedRequestParams>) -> Result<ListResourcesResult, ErrorData> {
    let store = asking.house.engine.store();
    let from: usize = match page.and_then(|page| page.cursor) {
        Some(cursor) => cursor.parse().map_err(|_| ErrorData::invalid_params("cursor: not one of ours", None))?,
        None => 0,
    };
    let (rooms, skills) =
        tokio::try_join!(store.rooms(&asking.owner, MAX_ROOMS), store.skills(&asking.owner)).map_err(failed)?;
    let rooms = rooms.iter().map(|summary| {
        let it = &summary.room;
        Resource::new(room(it.id), it.name.as_str()).with_description("A conversation.").with_mime_type(JSON)
    });
    let skills = skills.iter().map(|it| {
        let spec = &it.spec;
        let resource = Resource::new(skill(&spec.name), spec.name.as_str()).with_title(spec.title());
        resource.with_description(spec.description.as_str()).with_mime_type(MARKDOWN)
    });
    let mut rest = skills.chain(rooms).skip(from);
    let mut result = ListResourcesResult::with_all_items(rest.by_ref().take(PAGE).collect());
    result.next_cursor = rest.next().map(|_| (from + PAGE).to_string());
    Ok(result)
}

pub fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, about: &str, kind: Option<&str>| {
        let template = ResourceTemplate::new(uri, name).with_description(about);
        kind.map_or(template.clone(), |kind| template.with_mime_type(kind))
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template("greenroom://rooms/{id}", "room", "A conversation: its newest messages.", Some(JSON)),
        template("greenroom://runs/{id}", "run", "One agent's answer to one message, and how it went.", Some(JSON)),
        template("greenroom://skills/{name}", "skill", "A skill's document.", Some(MARKDOWN)),
        template("greenroom://skills/{name}/files/{+path}", "skill_file", "A file of a skill.", None),
        template(
            "greenroom://rooms/{id}/files/{+path}",
            "workplace_file",
            "A file that a room's agents work on; without a path, or with that of a folder, what is there.",
            None,
        ),
    ])
}

pub async fn read(asking: &Asking<'_>, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let missing =
        || ErrorData::resource_not_found(format!("there is no {uri}; resources/list shows what there is"), None);
    let address = Address::parse(uri).ok_or_else(missing)?;
    let read = match address {
        Address::Room(id) => {
            conversation(asking, id, None, MESSAGES).await.map(|told| as_json(uri, &told)).map_err(Into::into)
        }
        Address::Run(id) => run(asking, id).await.map(|told| as_json(uri, &told)).map_err(Into::into),
        Address::Skill(name) => {
            document(asking, &name).await.map(|text| as_text(uri, text, MARKDOWN)).map_err(Into::into)
        }
        Address::SkillFile(name, path) => {
            skill_content(asking, &name, &path).await.map(|bytes| as_bytes(uri, bytes)).map_err(Into::into)
        }
        Address::File(id, path) => file(asking, &asking.owner, id, &path, uri).await,
    };
    match read {
        Ok(contents) => Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]))),
        Err(engine::Error::NotFound) => Err(missing()),
        Err(engine::Error::Store(error)) => Err(failed(error)),
        Err(error) => Err(ErrorData::invalid_params(error.to_string(), None)),
    }
}

/// The messages of a room, up to `limit`, as tools and resources show them.
pub async fn conversation(
    asking: &Asking<'_>,
    id: RoomId,
    before: Option<u64>,
    limit: u32,
) -> Result<Value, store::Error> {
    let store = asking.house.engine.store();
    // One more than is shown says whether there are more.
    let (found, history) =
        tokio::try_join!(store.room(&asking.owner, id), store.history(&asking.owner, id, 0, before, limit + 1))?;
    let (all, mut bytes) = (history.messages.len(), 0);
    let fits = |message: &Message| {
        bytes += message.text.len().min(MAX_TEXT);
        bytes <= MAX_TEXTS
    };
    let newest_first = history.messages.into_iter().rev().take(limit as usize);
    let mut messages: Vec<Value> = newest_first.take_while(fits).map(shown).collect();
    messages.reverse();
    let more = messages.len() < all;
    Ok(json!({"room_id": id, "name": found.name, "head": history.head, "messages": messages, "more": more}))
}

/// A text as long as it may be, and whether that is less than all of it.
pub fn shortened(mut text: String) -> (String, bool) {
    let is_cut = text.len() > MAX_TEXT;
    if is_cut {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    (text, is_cut)
}

fn shown(message: Message) -> Value {
    let (kind, name) = match &message.author {
        Author::Person { name } => ("person", name),
        Author::Agent { name, .. } => ("agent", name),
    };
    let mut told = json!({"seq": message.seq, "author": name, "kind": kind, "status": message.status,
                          "run_id": message.run_id, "created_at": message.created_at});
    let (text, is_cut) = shortened(message.text);
    told["text"] = text.into();
    if is_cut {
        told["is_cut"] = true.into();
    }
    told
}

async fn run(asking: &Asking<'_>, id: RunId) -> Result<Value, store::Error> {
    let follow = crate::follow::Follow::begin(asking.house, &asking.owner, id).await?;
    let followed = follow.wait(std::time::Duration::ZERO, crate::follow::Nobody).await?;
    let mut told = serde_json::to_value(&followed.run)?;
    if let Some(fields) = told.as_object_mut() {
        fields.insert("text".into(), shortened(followed.answer.texts().0).0.into());
    }
    Ok(told)
}

async fn document(asking: &Asking<'_>, name: &SkillName) -> Result<String, store::Error> {
    let spec = asking.house.engine.store().skill(&asking.owner, name).await?.spec;
    Ok(spec.document(&spec.body, For::People))
}

async fn skill_content(asking: &Asking<'_>, name: &SkillName, path: &FilePath) -> Result<Vec<u8>, store::Error> {
    let store = asking.house.engine.store();
    let version = store.skill(&asking.owner, name).await?.version;
    Ok(store.skill_file(&asking.owner, name, version, path).await?.content)
}

async fn file(
    asking: &Asking<'_>,
    owner: &Owner,
    id: RoomId,
    path: &str,
    uri: &str,
) -> Result<ResourceContents, engine::Error> {
    Ok(match asking.house.engine.workplace_entry(owner, id, path).await? {
        WorkplaceEntry::File(bytes) => as_bytes(uri, bytes),
        WorkplaceEntry::Folder { names, more } => {
            as_json(uri, &json!({"folder": path, "entries": names, "more": more}))
        }
    })
}

fn as_text(uri: &str, text: String, kind: &str) -> ResourceContents {
    ResourceContents::text(text, uri).with_mime_type(kind)
}

fn as_json(uri: &str, value: &Value) -> ResourceContents {
    as_text(uri, value.to_string(), JSON)
}

/// Text where it is text.
fn as_bytes(uri: &str, bytes: Vec<u8>) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => as_text(uri, text, "text/plain"),
        Ok(text) => as_blob(uri, text.as_bytes()),
        Err(error) => as_blob(uri, error.as_bytes()),
    }
}

fn as_blob(uri: &str, bytes: &[u8]) -> ResourceContents {
    ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type("application/octet-stream")
}

/// What a database says of itself is for the operator's log.
pub fn failed(error: store::Error) -> ErrorData {
    tracing::error!(%error, "an MCP request failed");
    ErrorData::internal_error("the server could not read its data; try again", None)
}
