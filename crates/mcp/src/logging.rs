//! Log messages to clients. The newest revision has them for a last time and the library says so at every use, so all uses are
//! here.
#![expect(deprecated, reason = "clients of every revision that has it may ask for it")]

use rmcp::{
    RoleServer,
    model::{
        LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ServerJsonRpcMessage,
        ServerNotification,
    },
    service::Peer,
};
use serde_json::{Value, json};

pub type Level = LoggingLevel;
pub type SetLevel = rmcp::model::SetLevelRequestParams;
pub type SetLevelMethod = rmcp::model::SetLevelRequestMethod;

/// From `level` on, is what an agent does of interest?
pub fn wants_info(level: Option<Level>) -> bool {
    matches!(level, Some(Level::Debug | Level::Info))
}

pub async fn info(peer: &Peer<RoleServer>, logger: &str, data: Value) {
    log(peer, Level::Info, logger, data).await;
}

/// Told to everyone in a session, whatever they asked for: it ends.
pub async fn notice(peer: &Peer<RoleServer>, logger: &str, data: Value) {
    log(peer, Level::Notice, logger, data).await;
}

/// For a client that comes back to a stream that nobody has read for long.
pub fn left_out(count: u64) -> ServerJsonRpcMessage {
    let why = "Messages were left out, because nobody read them; read again what you follow.";
    let data = json!({"reason": why, "code": "messages_left_out", "count": count});
    let mut message = LoggingMessageNotificationParam::new(Level::Warning, data);
    message.logger = Some("greenroom".into());
    ServerJsonRpcMessage::notification(ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(
        message,
    )))
}

async fn log(peer: &Peer<RoleServer>, level: Level, logger: &str, data: Value) {
    let mut message = LoggingMessageNotificationParam::new(level, data);
    message.logger = Some(logger.into());
    if let Err(error) = peer.notify_logging_message(message).await {
        tracing::debug!(%error, "a log message could not be told");
    }
}
