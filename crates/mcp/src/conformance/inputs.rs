//! Answers that require client input first (SEP-2322): the requests of each round, and the signed state that the client
//! sends back.

use rmcp::{
    ErrorData,
    model::{
        ClientCapabilities, CreateMessageResult, ElicitResult, InputRequest, InputRequests, InputRequiredResult,
        InputResponses, ListRootsResult, RequestStateCodec, SealOptions,
    },
};
use serde::Deserialize;
use serde_json::Value;

/// Protects nothing: the key is public.
const KEY: &[u8] = b"the key of the conformance fixture";

#[derive(Deserialize)]
pub struct Inputs {
    /// Sequential: each round is answered before the next is requested.
    rounds: Vec<InputRequests>,
    /// The client carries the number of the round. Required for more than one round.
    #[serde(default)]
    signed: bool,
}

/// The parts of a call that concern its inputs.
pub struct InputCall<'a> {
    /// The tool or prompt. A state is valid for this one only.
    pub name: &'a str,
    pub responses: Option<&'a InputResponses>,
    pub state: Option<&'a str>,
    pub capabilities: ClientCapabilities,
}

pub enum InputStep {
    Ask(InputRequiredResult),
    /// All rounds are answered; holds the client's responses of the last round.
    Done(Value),
}

impl Inputs {
    pub fn step(&self, call: &InputCall<'_>) -> Result<InputStep, ErrorData> {
        let Some(round) = self.round(call)? else { return self.ask(0, call) };
        let asked = self.requests(round, call)?;
        let responses = call.responses.filter(|responses| are_answered(&asked, responses));
        match responses {
            None => self.ask(round, call),
            Some(_) if round + 1 < self.rounds.len() => self.ask(round + 1, call),
            Some(responses) => {
                Ok(InputStep::Done(responses.iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
            }
        }
    }

    /// Returns the round that the call answers, if any.
    fn round(&self, call: &InputCall<'_>) -> Result<Option<usize>, ErrorData> {
        if !self.signed {
            return Ok(Some(0));
        }
        let open = |state| codec().open_json_with(state, call.name.as_bytes());
        call.state.map(open).transpose().map_err(|error| ErrorData::invalid_params(error.to_string(), None))
    }

    fn ask(&self, round: usize, call: &InputCall<'_>) -> Result<InputStep, ErrorData> {
        let options = SealOptions::new().associated_data(call.name.as_bytes());
        let state = self.signed.then(|| codec().seal_json_with(&round, &options)).transpose();
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(InputStep::Ask(InputRequiredResult::new(Some(self.requests(round, call)?), state)))
    }

    /// Returns the requests of a round that the client supports.
    fn requests(&self, round: usize, call: &InputCall<'_>) -> Result<InputRequests, ErrorData> {
        let requests = self.rounds.get(round);
        let requests = requests.ok_or_else(|| ErrorData::invalid_params("unknown round", None))?;
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

/// Each request must have a matching response; additional responses are ignored.
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
