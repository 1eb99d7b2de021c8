//! Log messages to clients. They are deprecated in the newest revision and rmcp warns at every use, so all uses are
//! here.
#![expect(deprecated, reason = "clients of every revision may still request log messages")]

use rmcp::{
    RoleServer,
    model::{
        LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ServerJsonRpcMessage,
        ServerNotification,
    },
    service::Peer,
};
use serde_json::{Value, json};

pub type McpLogLevel = LoggingLevel;
pub type SetLevelParams = rmcp::model::SetLevelRequestParams;
pub type SetLevelMethod = rmcp::model::SetLevelRequestMethod;

/// Returns whether messages of level `info` are wanted.
pub fn wants_info(level: Option<McpLogLevel>) -> bool {
    matches!(level, Some(McpLogLevel::Debug | McpLogLevel::Info))
}

pub async fn info(peer: &Peer<RoleServer>, logger: &str, data: Value) {
    log(peer, McpLogLevel::Info, logger, data).await;
}

/// Sent to every session regardless of its level: the session ends.
pub async fn notice(peer: &Peer<RoleServer>, logger: &str, data: Value) {
    log(peer, McpLogLevel::Notice, logger, data).await;
}

/// Tells a client that resumes a stream how many messages were dropped.
pub fn left_out_notice(count: u64) -> ServerJsonRpcMessage {
    let why = "Messages were dropped because they were not read in time; read your resources again.";
    let data = json!({"reason": why, "code": "messages_left_out", "count": count});
    let mut message = LoggingMessageNotificationParam::new(McpLogLevel::Warning, data);
    message.logger = Some("greenroom".into());
    ServerJsonRpcMessage::notification(ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(
        message,
    )))
}

async fn log(peer: &Peer<RoleServer>, level: McpLogLevel, logger: &str, data: Value) {
    let mut message = LoggingMessageNotificationParam::new(level, data);
    message.logger = Some(logger.into());
    if let Err(error) = peer.notify_logging_message(message).await {
        tracing::debug!(%error, "could not send a log message");
    }
}
