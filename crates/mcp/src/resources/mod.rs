//! Lists and reads rooms, runs, skills and files as resources. `address` has their URIs.

mod address;

pub use address::{ResourceAddress, room_uri, skill_file_uri, skill_uri};

use crate::handler::McpRequestContext;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    ids::{RoomId, RunId},
    message::{Author, Message},
    skill::{FilePath, SkillName, document::Audience},
};
use engine::commands::WorkspaceEntry;
use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    },
};
use serde_json::{Value, json};

/// The page size of the list, and the maximum number of listed rooms.
const PAGE_SIZE: usize = 100;
const MAX_ROOMS: u32 = 1000;
/// How many messages a room resource shows; `read_room` pages through the rest.
const MAX_MESSAGES: u32 = 100;
/// The maximum size of one text, and of all texts together.
const MAX_TEXT: usize = 512 * 1024;
const MAX_TEXTS: usize = 1024 * 1024;
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

pub async fn list(
    ctx: &McpRequestContext<'_>,
    page: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let queries = ctx.shared.engine.queries();
    let from: usize = match page.and_then(|page| page.cursor) {
        Some(cursor) => cursor.parse().map_err(|_| ErrorData::invalid_params("cursor: unknown value", None))?,
        None => 0,
    };
    let (rooms, skills) =
        tokio::try_join!(queries.rooms(&ctx.actor.workspace, MAX_ROOMS), queries.skills(&ctx.actor.workspace))
            .map_err(store_failure)?;
    let rooms = rooms.iter().map(|summary| {
        let it = &summary.room;
        Resource::new(room_uri(it.id), it.name.as_str()).with_description("A conversation.").with_mime_type(JSON)
    });
    let skills = skills.iter().map(|it| {
        let spec = &it.spec;
        let resource = Resource::new(skill_uri(&spec.name), spec.name.as_str()).with_title(spec.title());
        resource.with_description(spec.description.as_str()).with_mime_type(MARKDOWN)
    });
    let mut rest = skills.chain(rooms).skip(from);
    let mut result = ListResourcesResult::with_all_items(rest.by_ref().take(PAGE_SIZE).collect());
    result.next_cursor = rest.next().map(|_| (from + PAGE_SIZE).to_string());
    Ok(result)
}

pub fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, about: &str, kind: Option<&str>| {
        let template = ResourceTemplate::new(uri, name).with_description(about);
        kind.map_or(template.clone(), |kind| template.with_mime_type(kind))
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template("greenroom://rooms/{id}", "room", "The newest messages of a conversation.", Some(JSON)),
        template("greenroom://runs/{id}", "run", "An agent's answer to a message, with its status.", Some(JSON)),
        template("greenroom://skills/{name}", "skill", "The document of a skill.", Some(MARKDOWN)),
        template("greenroom://skills/{name}/files/{+path}", "skill_file", "A file of a skill.", None),
        template(
            "greenroom://rooms/{id}/files/{+path}",
            "workplace_file",
            "A file in a room's workspace. Without a path, or for a folder, a list of its entries.",
            None,
        ),
    ])
}

pub async fn read(ctx: &McpRequestContext<'_>, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let missing = || {
        ErrorData::resource_not_found(format!("{uri} not found; resources/list shows the available resources"), None)
    };
    let address = ResourceAddress::parse(uri).ok_or_else(missing)?;
    let read = match address {
        ResourceAddress::Room(id) => {
            conversation(ctx, id, None, MAX_MESSAGES).await.map(|value| as_json(uri, &value)).map_err(Into::into)
        }
        ResourceAddress::Run(id) => run(ctx, id).await.map(|value| as_json(uri, &value)).map_err(Into::into),
        ResourceAddress::Skill(name) => {
            document(ctx, &name).await.map(|text| as_text(uri, text, MARKDOWN)).map_err(Into::into)
        }
        ResourceAddress::SkillFile(name, path) => {
            skill_content(ctx, &name, &path).await.map(|bytes| as_bytes(uri, bytes)).map_err(Into::into)
        }
        ResourceAddress::File(id, path) => file(ctx, id, &path, uri).await,
    };
    match read {
        Ok(contents) => Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]))),
        Err(engine::EngineError::NotFound) => Err(missing()),
        Err(engine::EngineError::Store(error)) => Err(store_failure(error)),
        Err(error) => Err(ErrorData::invalid_params(error.to_string(), None)),
    }
}

/// Returns up to `limit` messages of a room, in the form used by tools and resources.
pub async fn conversation(
    ctx: &McpRequestContext<'_>,
    id: RoomId,
    before: Option<u64>,
    limit: u32,
) -> Result<Value, store::StoreError> {
    let queries = ctx.shared.engine.queries();
    // One extra message shows whether there are more.
    let (found, history) = tokio::try_join!(
        queries.room(&ctx.actor.workspace, id),
        queries.history(&ctx.actor.workspace, id, 0, before, limit + 1)
    )?;
    let (all, mut bytes) = (history.messages.len(), 0);
    let fits = |message: &Message| {
        bytes += message.text.len().min(MAX_TEXT);
        bytes <= MAX_TEXTS
    };
    let newest_first = history.messages.into_iter().rev().take(limit as usize);
    let mut messages: Vec<Value> = newest_first.take_while(fits).map(message_json).collect();
    messages.reverse();
    let more = messages.len() < all;
    Ok(json!({"room_id": id, "name": found.name, "head": history.head, "messages": messages, "more": more}))
}

/// Truncates a text to the maximum size. Returns whether it was cut.
pub fn truncated(mut text: String) -> (String, bool) {
    let is_cut = text.len() > MAX_TEXT;
    if is_cut {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    (text, is_cut)
}

fn message_json(message: Message) -> Value {
    let (kind, name) = match &message.author {
        Author::Person { name, .. } => ("person", name),
        Author::Agent { name, .. } => ("agent", name),
    };
    let mut value = json!({"seq": message.seq, "author": name, "kind": kind, "status": message.status,
                          "run_id": message.run_id, "created_at": message.created_at});
    let (text, is_cut) = truncated(message.text);
    value["text"] = text.into();
    if is_cut {
        value["is_cut"] = true.into();
    }
    value
}

async fn run(ctx: &McpRequestContext<'_>, id: RunId) -> Result<Value, store::StoreError> {
    let follow = crate::follow::RunFollow::start(ctx.shared, &ctx.actor.workspace, id).await?;
    let followed = follow.wait(std::time::Duration::ZERO, crate::follow::NoListener).await?;
    let mut value = serde_json::to_value(&followed.run)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("text".into(), truncated(followed.answer.texts().0).0.into());
    }
    Ok(value)
}

async fn document(ctx: &McpRequestContext<'_>, name: &SkillName) -> Result<String, store::StoreError> {
    let spec = ctx.shared.engine.queries().skill(&ctx.actor.workspace, name).await?.spec;
    Ok(spec.document(&spec.body, Audience::People))
}

async fn skill_content(
    ctx: &McpRequestContext<'_>,
    name: &SkillName,
    path: &FilePath,
) -> Result<Vec<u8>, store::StoreError> {
    let queries = ctx.shared.engine.queries();
    let version = queries.skill(&ctx.actor.workspace, name).await?.version;
    Ok(queries.skill_file(&ctx.actor.workspace, name, version, path).await?.content)
}

async fn file(
    ctx: &McpRequestContext<'_>,
    id: RoomId,
    path: &str,
    uri: &str,
) -> Result<ResourceContents, engine::EngineError> {
    Ok(match ctx.shared.engine.workspace_entry(&ctx.actor, id, path).await? {
        WorkspaceEntry::File(bytes) => as_bytes(uri, bytes),
        WorkspaceEntry::Folder { names, more } => {
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

/// Returns text if the bytes are valid text, else a blob.
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

/// Database errors go to the log, not to the client.
pub fn store_failure(error: store::StoreError) -> ErrorData {
    tracing::error!(%error, "an MCP request failed");
    ErrorData::internal_error("the server could not read its data; try again later", None)
}
