//! Paths of other agent servers, for programs that were written for those: agents and skills, chat sessions, threads, and
//! the messages of an agent. Each is a thin alias of rooms, runs, agents and skills, with the field names of its own; it
//! must decide nothing that the command behind it does not. `docs/api.md` lists them.

mod agent_messages;
mod agents;
mod chat_sessions;
mod skills;
mod threads;

use crate::{
    routes,
    routing::{Policy::Needs, RouterBuilder},
};
use domain::permission::Permission::{ManageAgents, ManageSkills, Post, Read};
use serde::{Deserialize, Serialize};

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    builder
        .add(Needs(Read), routes!(agents::list_strapi_agents))
        .add(Needs(ManageAgents), routes!(agents::create_strapi_agent))
        .add(Needs(Read), routes!(agents::get_strapi_agent))
        .add(Needs(ManageAgents), routes!(agents::update_strapi_agent, agents::delete_strapi_agent))
        .add(Needs(Read), routes!(skills::list_strapi_skills))
        .add(Needs(ManageSkills), routes!(skills::create_strapi_skill))
        .add(Needs(Read), routes!(skills::get_strapi_skill))
        .add(Needs(ManageSkills), routes!(skills::update_strapi_skill, skills::delete_strapi_skill))
        .add(Needs(Read), routes!(chat_sessions::list_chat_sessions))
        .add(Needs(Post), routes!(chat_sessions::create_chat_session))
        .add(Needs(Read), routes!(chat_sessions::get_chat_session))
        .add(Needs(Post), routes!(chat_sessions::delete_chat_session))
        .add(Needs(Read), routes!(chat_sessions::list_chat_messages))
        .add(Needs(Post), routes!(chat_sessions::send_chat_message))
        .add(Needs(Post), routes!(chat_sessions::cancel_chat_session))
        .add(Needs(Post), routes!(chat_sessions::cancel_chat_message))
        .add(Needs(Read), routes!(agent_messages::list_agent_messages))
        .add(Needs(Post), routes!(threads::create_thread))
        .add(Needs(Read), routes!(threads::list_thread_messages))
        .add(Needs(Post), routes!(threads::add_thread_message))
        .add(Needs(Post), routes!(threads::start_agent))
        .add(Needs(Read), routes!(threads::stream_agent_run))
        .add(Needs(Post), routes!(threads::stop_agent_run))
}

/// The page of a list. Other parameters are ignored: other servers have many.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct AliasPage {
    /// Only entries whose name or description contains this text.
    search: Option<String>,
    /// From 1; 0 is the first page too.
    page: Option<usize>,
    /// Entries of a page; 100 by default, at least 1 and at most 1000.
    page_size: Option<usize>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AliasPageInfo {
    /// From 1.
    page: usize,
    /// Entries of a page.
    page_size: usize,
    /// How many entries there are on all pages.
    total: usize,
}

impl AliasPage {
    /// Selects the entries of the page. `texts` is what a search looks at.
    fn select<T>(&self, mut entries: Vec<T>, texts: impl Fn(&T) -> [String; 2]) -> (Vec<T>, AliasPageInfo) {
        if let Some(search) = self.search.as_ref().map(|search| search.to_lowercase()) {
            entries.retain(|entry| texts(entry).iter().any(|text| text.to_lowercase().contains(&search)));
        }
        let (page, page_size) = (self.page.unwrap_or(1).max(1), self.page_size.unwrap_or(100).clamp(1, 1000));
        let info = AliasPageInfo { page, page_size, total: entries.len() };
        let selected = entries.into_iter().skip((page - 1).saturating_mul(page_size)).take(page_size);
        (selected.collect(), info)
    }
}

/// The answer to a request that has nothing else to say.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AliasSuccess {
    /// Always true; an error is a problem with its status.
    success: bool,
}
