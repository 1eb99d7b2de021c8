//! The model gateway for endpoints, in types of the engine, so that `crates/server` needs none of a provider.

use crate::Engine;
use providers::gateway::{GatewayBody, GatewayRequest};

/// A request of a program in a sandbox to a model API.
pub struct GuestRequest {
    /// The key of the sandbox.
    pub sandbox: String,
    pub method: String,
    /// The path and query after `/gateway/`.
    pub target: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// A response whose body is still arriving.
pub struct GuestResponse {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: GuestResponseBody,
}

/// Dropping it closes the connection to the API.
pub struct GuestResponseBody(GatewayBody);

impl GuestResponseBody {
    /// The next piece; `None` at the end. An error ends the response early.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        self.0.next().await
    }
}

/// A request that was not passed on.
#[derive(Debug)]
pub struct GuestRefusal {
    pub status: u16,
    pub message: String,
}

impl Engine {
    /// Passes a request of a program in a sandbox on to its model API. Returns when the response begins.
    pub async fn forward_to_model(&self, request: GuestRequest) -> Result<GuestResponse, GuestRefusal> {
        let GuestRequest { sandbox, method, target, headers, body } = request;
        let request = GatewayRequest { method, target, headers, body };
        match self.providers().gateway().forward(&sandbox, request).await {
            Ok(answer) => {
                let body = GuestResponseBody(answer.body);
                Ok(GuestResponse { status: answer.status, headers: answer.headers, body })
            }
            Err(refusal) => Err(GuestRefusal { status: refusal.status(), message: refusal.to_string() }),
        }
    }
}
