//! Answers that need the client first (SEP-2322): which requests it is sent away with, in how many rounds, and the signed
//! state by which it comes back.

use rmcp::{
    ErrorData,
    model::{
        ClientCapabilities, CreateMessageResult, ElicitResult, InputRequest, InputRequests, InputRequiredResult,
        InputResponses, ListRootsResult, RequestStateCodec, SealOptions,
    },
};
use serde::Deserialize;
use serde_json::Value;

/// Nothing is protected by it: whoever reads this file can sign.
const KEY: &[u8] = b"the key of the conformance fixture";

#[derive(Deserialize)]
pub struct Inputs {
    /// One after the other; each is answered before the next is asked.
    rounds: Vec<InputRequests>,
    /// The client carries how far it has come. More than one round need this.
    #[serde(default)]
    signed: bool,
}

/// What a call brings along that is to have its inputs.
pub struct Call<'a> {
    /// Of the tool or prompt. A state is good for this one only.
    pub name: &'a str,
    pub responses: Option<&'a InputResponses>,
    pub state: Option<&'a str>,
    pub capabilities: ClientCapabilities,
}

pub enum Step {
    Ask(InputRequiredResult),
    /// All rounds are answered; this is what the client said in the last one.
    Done(Value),
}

impl Inputs {
    pub fn step(&self, call: &Call<'_>) -> Result<Step, ErrorData> {
        let Some(round) = self.round(call)? else { return self.ask(0, call) };
        let asked = self.requests(round, call)?;
        let responses = call.responses.filter(|responses| are_answered(&asked, responses));
        match responses {
            None => self.ask(round, call),
            Some(_) if round + 1 < self.rounds.len() => self.ask(round + 1, call),
            Some(responses) => {
                Ok(Step::Done(responses.iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
            }
        }
    }

    /// Which round the call answers, if any.
    fn round(&self, call: &Call<'_>) -> Result<Option<usize>, ErrorData> {
        if !self.signed {
            return Ok(Some(0));
        }
        let open = |state| codec().open_json_with(state, call.name.as_bytes());
        call.state.map(open).transpose().map_err(|error| ErrorData::invalid_params(error.to_string(), None))
    }

    fn ask(&self, round: usize, call: &Call<'_>) -> Result<Step, ErrorData> {
        let options = SealOptions::new().associated_data(call.name.as_bytes());
        let state = self.signed.then(|| codec().seal_json_with(&round, &options)).transpose();
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(Step::Ask(InputRequiredResult::new(Some(self.requests(round, call)?), state)))
    }

    /// Those of a round that the client can fulfil.
    fn requests(&self, round: usize, call: &Call<'_>) -> Result<InputRequests, ErrorData> {
        let requests = self.rounds.get(round);
        let requests = requests.ok_or_else(|| ErrorData::invalid_params("there is no such round", None))?;
        let can = &call.capabilities;
        let is_possible = |request: &InputRequest| match request {
            InputRequest::CreateMessage(_) => can.sampling.is_some(),
            InputRequest::Elicitation(_) => can.elicitation.is_some(),
            InputRequest::ListRoots(_) => can.roots.is_some(),
            _ => false,
        };
        let possible = requests.iter().filter(|(_, request)| is_possible(request));
        let possible: InputRequests = possible.map(|(key, request)| (key.clone(), request.clone())).collect();
        match possible.is_empty() {
            true => Err(ErrorData::missing_required_client_capability(needed(requests))),
            false => Ok(possible),
        }
    }
}

/// What is there for a request has to be an answer to it; what nobody asked for does not matter.
fn are_answered(requests: &InputRequests, responses: &InputResponses) -> bool {
    requests.iter().all(|(key, request)| {
        let Some(response) = responses.get(key) else { return false };
        match request {
            InputRequest::CreateMessage(_) => CreateMessageResult::deserialize(response).is_ok(),
            InputRequest::Elicitation(_) => ElicitResult::deserialize(response).is_ok(),
            InputRequest::ListRoots(_) => ListRootsResult::deserialize(response).is_ok(),
            _ => false,
        }
    })
}

fn needed(requests: &InputRequests) -> ClientCapabilities {
    let mut needed = ClientCapabilities::default();
    for request in requests.values() {
        match request {
            InputRequest::CreateMessage(_) => needed.sampling = Some(Default::default()),
            InputRequest::Elicitation(_) => needed.elicitation = Some(Default::default()),
            InputRequest::ListRoots(_) => needed.roots = Some(Default::default()),
            _ => {}
        }
    }
    needed
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::new_unchecked(KEY)
}
