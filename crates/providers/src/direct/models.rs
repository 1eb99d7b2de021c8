//! The list of the models of an API: where it is, and what it says. Pure.

use super::wire::{
    ModelApiKind,
    failure::{ModelFailure, ModelFailureKind},
};
use domain::mcp::url_without_secrets;
use serde_json::Value;

/// A longer list is cut: routers have hundreds of models, broken servers any number.
pub const MAX_MODELS: usize = 1000;
const MAX_NAME_CHARS: usize = 200;

/// A model that an API offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedModel {
    /// The name that agents set as their `model`.
    pub id: String,
    /// The vendor's name for people.
    pub label: Option<String>,
}

/// The address of the list.
pub(super) fn url(api: ModelApiKind, base_url: &str) -> Option<reqwest::Url> {
    let mut url = reqwest::Url::parse(base_url).ok()?;
    let (segments, page_size): (&[&str], _) = match api {
        ModelApiKind::Messages => (&["v1", "models"], Some(("limit", "1000"))),
        ModelApiKind::Chat | ModelApiKind::Responses => (&["models"], None),
        ModelApiKind::Gemini => (&["v1beta", "models"], Some(("pageSize", "1000"))),
    };
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    if let Some((name, value)) = page_size {
        url.query_pairs_mut().append_pair(name, value);
    }
    Some(url)
}

/// The models of a list, by name. `None` if it is not a list.
pub(super) fn parse(api: ModelApiKind, body: &[u8]) -> Option<Vec<ListedModel>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let (items, id, label) = match api {
        ModelApiKind::Gemini => (&list["models"], "name", "displayName"),
        ModelApiKind::Messages => (&list["data"], "id", "display_name"),
        ModelApiKind::Chat | ModelApiKind::Responses => (&list["data"], "id", "name"),
    };
    let is_name =
        |text: &&str| !text.is_empty() && text.chars().count() <= MAX_NAME_CHARS && !text.chars().any(char::is_control);
    let text = |item: &Value, field: &str| item[field].as_str().filter(is_name).map(str::to_owned);
    // Google lists models for other uses too.
    let answers = |item: &&Value| {
        let methods = item["supportedGenerationMethods"].as_array();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
    };
    let model = |item: &Value| {
        let id = text(item, id)?;
        let id = id.strip_prefix("models/").map_or(id.clone(), str::to_owned);
        Some(ListedModel { label: text(item, label).filter(|label| *label != id), id })
    };
    let mut models: Vec<ListedModel> =
        items.as_array()?.iter().filter(answers).filter_map(model).take(MAX_MODELS).collect();
    models.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    models.dedup_by(|one, other| one.id == other.id);
    Some(models)
}

/// What an error response to the list means.
pub(super) fn failure(status: u16, base_url: &str, body: &[u8]) -> ModelFailure {
    match status {
        404 | 405 => ModelFailure::new(ModelFailureKind::InvalidResponse, no_list(base_url)),
        _ => ModelFailure::from_status(status, None, body),
    }
}

pub(super) fn no_list(base_url: &str) -> String {
    format!("{} does not list models; check that it is the address of the API", url_without_secrets(base_url))
}

#[cfg(test)]
mod tests {
    use super::{ListedModel, MAX_MODELS, ModelApiKind, parse, url};
    use serde_json::json;

    #[test]
    fn lists_are_read_in_the_format_of_each_vendor() {
        let model = |id: &str, label: Option<&str>| ListedModel { id: id.into(), label: label.map(str::to_owned) };
        for (api, list, expected) in [
            (
                ModelApiKind::Messages,
                json!({"data": [{"type": "model", "id": "claude-b", "display_name": "Claude B"}], "has_more": false}),
                vec![model("claude-b", Some("Claude B"))],
            ),
            (
                ModelApiKind::Chat,
                json!({"object": "list", "data": [{"id": "z"}, {"id": "a/b:free", "name": "B"}, {"id": "z"}, {"id": 7}, {"id": "x\ny"}]}),
                vec![model("a/b:free", Some("B")), model("z", None)],
            ),
            (
                ModelApiKind::Gemini,
                json!({"models": [
                    {"name": "models/gemini-x", "displayName": "Gemini X", "supportedGenerationMethods": ["generateContent"]},
                    {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
                ]}),
                vec![model("gemini-x", Some("Gemini X"))],
            ),
        ] {
            assert_eq!(parse(api, list.to_string().as_bytes()), Some(expected), "{api:?}");
        }
        assert_eq!(parse(ModelApiKind::Chat, b"<html>"), None);
        assert_eq!(parse(ModelApiKind::Chat, b"{}"), None);
        let many: Vec<_> = (0..2 * MAX_MODELS).map(|n| json!({"id": n.to_string()})).collect();
        let many = json!({"data": many}).to_string();
        assert_eq!(parse(ModelApiKind::Chat, many.as_bytes()).unwrap().len(), MAX_MODELS);
    }

    #[test]
    fn the_list_is_beneath_the_base_address() {
        for (api, base, expected) in [
            (ModelApiKind::Messages, "https://a.example", "https://a.example/v1/models?limit=1000"),
            (ModelApiKind::Chat, "https://a.example/api/v1", "https://a.example/api/v1/models"),
            (ModelApiKind::Gemini, "https://a.example/", "https://a.example/v1beta/models?pageSize=1000"),
        ] {
            assert_eq!(url(api, base).unwrap().as_str(), expected);
        }
    }
}
