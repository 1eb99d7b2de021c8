//! The tools of an agent on a bare model: Greenroom's own, and those of its MCP servers.
//!
//! [`Kit::gather`] finds out what there is for one turn; [`Kit::run`] carries a call out. `skill` and `memory` are tools of
//! our own; [`Toolbox`] is what MCP servers are reached through.

mod manager;
mod memory;
mod own;
mod skill;
#[cfg(test)]
mod tests;
mod toolbox;

pub use manager::Managed;
pub use skill::{Skill, read_all};
pub use toolbox::{Called, Listed, Listing, Report, Toolbox, ToolboxFuture};

use super::{
    conversation::{Content, shortened},
    machine::{Manner, Outcome, Tool},
    wire::Offer,
};
use crate::{Memory, TurnEvent};
use domain::{
    agent::{ToolPolicy, Verdict},
    mcp::Server,
    time::Timestamp,
};
use own::Own;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a model is shown of one result, at most.
const MAX_RESULT_BYTES: usize = 200 * 1024;
/// Of one result's images, as they are sent.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// The tools of one turn.
#[derive(Debug, Default)]
pub struct Kit {
    pub offers: Vec<Offer>,
    pub tools: BTreeMap<String, Tool>,
    carriers: BTreeMap<String, Carrier>,
}

#[derive(Clone, Debug)]
enum Carrier {
    Own(Own),
    Mcp { toolbox: Arc<dyn Toolbox>, server: Server, tool: String },
}

/// What a tool has done, and what the room should hear of it besides.
#[derive(Debug)]
pub struct Done {
    pub call: String,
    pub outcome: Outcome,
    pub notices: Vec<TurnEvent>,
}

impl Kit {
    /// A server that cannot be reached takes nothing from the others: the room is told.
    pub async fn gather(
        servers: &[Server],
        toolbox: &Arc<dyn Toolbox>,
        skills: &Arc<Vec<Skill>>,
        memory: &Memory,
        policy: &ToolPolicy,
    ) -> (Self, Vec<TurnEvent>) {
        let mut kit = Self::default();
        for (own, offer, manner) in own::all(skills, memory) {
            kit.add(offer, manner, Carrier::Own(own), policy);
        }
        let mut notices = Vec::new();
        for Listing { server, tools } in toolbox.list(servers.to_vec()).await {
            match tools {
                Ok(tools) => {
                    for Listed { name, description, schema } in tools {
                        let full = format!("mcp__{}__{name}", server.name);
                        let offer = Offer { name: full, description, schema };
                        let toolbox = Arc::clone(toolbox);
                        let carrier = Carrier::Mcp { toolbox, server: server.clone(), tool: name };
                        kit.add(offer, Manner::Asks, carrier, policy);
                    }
                }
                Err(message) => notices.push(TurnEvent::Status {
                    status: "mcp_server_failed".into(),
                    message: format!("The tools of the MCP server {} are missing: {message}", server.name),
                }),
            }
        }
        (kit, notices)
    }

    /// What is denied anyway is not offered.
    fn add(&mut self, offer: Offer, manner: Manner, carrier: Carrier, policy: &ToolPolicy) {
        if policy.verdict(&offer.name) == Verdict::Deny || self.tools.contains_key(&offer.name) {
            return;
        }
        self.tools.insert(offer.name.clone(), Tool { schema: offer.schema.clone(), manner });
        self.carriers.insert(offer.name.clone(), carrier);
        self.offers.push(offer);
    }

    /// Of what every question to the model carries.
    pub fn bytes(&self) -> usize {
        let bytes = |offer: &Offer| offer.name.len() + offer.description.len() + offer.schema.to_string().len();
        self.offers.iter().map(bytes).sum()
    }

    /// Carries a call out. What it reports meanwhile goes into `output`, with the call's id.
    pub fn run(
        &self,
        call: String,
        name: &str,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<Report>,
    ) -> impl Future<Output = Done> + Send + 'static {
        let carrier = self.carriers.get(name).cloned();
        async move {
            let (outcome, notices) = match carrier {
                None => (Outcome::text("There is no such tool.", true), Vec::new()),
                Some(Carrier::Own(own)) => (own.run(&input, Timestamp::now()).await, Vec::new()),
                Some(Carrier::Mcp { toolbox, server, tool }) => {
                    let Called { outcome, notices } =
                        toolbox.call(server, tool, input, cancel, output, call.clone()).await;
                    (outcome, notices)
                }
            };
            Done { call, outcome: bounded(outcome), notices }
        }
    }
}

/// A result must not fill the model's whole context: all its texts together have a bound, and so have its images.
fn bounded(mut outcome: Outcome) -> Outcome {
    let (mut texts, mut images) = (MAX_RESULT_BYTES, MAX_IMAGE_BYTES);
    for content in &mut outcome.content {
        match content {
            Content::Text(text) if text.len() > texts => {
                *text = shortened(text, texts);
                texts = 0;
            }
            Content::Text(text) => texts -= text.len(),
            Content::Image { data, .. } if data.len() > images => {
                *content = Content::Text("(An image was left out: it is too large to be shown.)".into());
            }
            Content::Image { data, .. } => images -= data.len(),
        }
    }
    outcome
}
