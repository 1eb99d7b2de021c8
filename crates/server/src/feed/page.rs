//! A page of events as JSON, assembled from the stored bytes of each event.

use domain::event::Event;
use store::journal::Page;

pub const DEFAULT_LIMIT: u32 = 500;
pub const MAX_LIMIT: u32 = 10_000;

pub fn json(page: &Page, with_raw: bool) -> Vec<u8> {
    let size: usize = page.events.iter().map(|event| event.data.len() + 320).sum();
    let mut body = Vec::with_capacity(size + 64);
    body.extend_from_slice(format!(r#"{{"epoch":"{}","head":{},"events":["#, page.epoch, page.head).as_bytes());
    for (index, event) in page.events.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        event.write_json(&mut body, with_raw);
    }
    body.extend_from_slice(b"]}");
    body
}

/// A page of a room's events.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct EventPage {
    epoch: String,
    /// The seq of the room's newest event when the page was read.
    head: u64,
    events: Vec<Event>,
}
