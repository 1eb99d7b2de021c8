//! A client that answers elicitation requests with the defaults of the form.

use anyhow::Context as _;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, Implementation, ProtocolVersion,
    },
    service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext},
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::sleep;
use workbench::mcp::transport;

const STREAM_OPENS_IN: Duration = Duration::from_secs(1);

struct DefaultsClient;

impl ClientHandler for DefaultsClient {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::new().with_schema_validation(true);
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let us = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let form = serde_json::to_value(&request).unwrap_or_default();
        let fields = form["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let default = |(name, field): (String, Value)| Some((name, field.get("default")?.clone()));
        let answers: Map<String, Value> = fields.into_iter().filter_map(default).collect();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(answers)))
    }
}

pub async fn run(url: &str, version: &str) -> anyhow::Result<()> {
    let transport = transport::streamable_http_transport(transport::http_client(None)?, url, &BTreeMap::new())
        .map_err(anyhow::Error::msg)?;
    let mode = match version {
        "2026-07-28" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    let client = DefaultsClient.serve_with_lifecycle(transport, mode).await.context("the handshake failed")?;
    // The server asks on the session's own stream, which opens in the background without a sign; what it asks before is lost.
    sleep(STREAM_OPENS_IN).await;
    for tool in client.list_tools(None).await?.tools {
        client.call_tool(CallToolRequestParams::new(tool.name)).await.context("the tool call failed")?;
    }
    client.cancel().await?;
    Ok(())
}
