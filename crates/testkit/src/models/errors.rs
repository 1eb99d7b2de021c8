//! HTTP errors in the format of each vendor.

use super::{
    handler::VendorApi,
    reply::{IdSequence, ModelReply},
};
use serde_json::json;

/// `status` defaults to the API's usual error status.
pub fn error_reply(api: VendorApi, status: Option<u16>, ids: &IdSequence) -> ModelReply {
    let status = status.unwrap_or(if api == VendorApi::Messages { 529 } else { 500 });
    let message = if status == 529 { "Overloaded".to_owned() } else { format!("scripted error {status}") };
    let body = match api {
        VendorApi::Messages => json!({
            "type": "error",
            "error": {"type": kind(status).unwrap_or("api_error"), "message": message},
            "request_id": ids.next("req"),
        }),
        VendorApi::Gemini => json!({"error": {"code": status, "message": message, "status": grpc_status(status)}}),
        VendorApi::Responses | VendorApi::Chat => {
            let code = match status {
                401 => Some("invalid_api_key"),
                404 => Some("model_not_found"),
                429 => Some("rate_limit_exceeded"),
                _ => None,
            };
            let kind = kind(status).unwrap_or("server_error");
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
    };
    ModelReply::Whole { status, retry_after: (status == 429).then_some(1), body }
}

fn kind(status: u16) -> Option<&'static str> {
    Some(match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        500 | 503 => "api_error",
        529 => "overloaded_error",
        _ => return None,
    })
}

fn grpc_status(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
