//! The host tools that come with Greenroom.

mod ask_user;
mod current_time;
pub mod project;
mod read_attachment;
mod room;
mod skill;

pub use ask_user::{ASK_USER, AskUser};
pub use current_time::CurrentTime;
pub use read_attachment::{READ_ATTACHMENT, ReadAttachment};
pub use room::{EndRound, Skip, Whisper};
pub use skill::{LoadSkill, SKILL};

use super::HostTool;
use std::sync::Arc;

/// All of them, in the order in which agents see them.
pub fn all() -> Vec<Arc<dyn HostTool>> {
    vec![
        Arc::new(CurrentTime),
        Arc::new(AskUser),
        Arc::new(LoadSkill),
        Arc::new(ReadAttachment),
        Arc::new(Skip),
        Arc::new(Whisper),
        Arc::new(EndRound),
    ]
}
