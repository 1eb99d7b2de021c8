//! One run from claim to end.

use super::{
    Ahead, Ledger, Signals,
    knowledge::Knowledge,
    memory::Memory,
    pump::{Messages, Pump, Turn},
    told::Told,
};
use crate::{
    Engine,
    equipment::Remark,
    skills::Occasion,
    turn::{Entry, Machine, Setting},
};
use domain::{
    agent::Agent,
    event::{RunFailed, RunStarted, Status, StreamStart},
    ids::{MessageId, RoomId},
    message::Message,
    owner::Owner,
    run::{Run, RunError, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{Place, Provider, TurnRequest};
use std::sync::Arc;
use store::{
    Error,
    journal::{Change, Ending},
    queue::Claim,
};

/// Who answers what. Where a run is begun by those who queued it, they know.
pub(crate) struct Brief {
    pub run: Run,
    pub agent: Agent,
    pub message: Message,
    pub ahead: Option<Ahead>,
}

/// Returns when the run has its terminal event, or when it is not ours any more.
pub(crate) async fn drive(engine: Engine, claim: Claim, brief: Option<Brief>, signals: Signals) {
    let run_id = claim.run_id;
    match try_drive(&engine, claim, brief, signals).await {
        Ok(()) => {}
        Err(Error::Fenced) => tracing::info!(run = %run_id, "the run was taken over or ended elsewhere"),
        // Its lease is not renewed once it is off the board, or it is found without a driver: recovery ends it.
        Err(error) => tracing::error!(run = %run_id, %error, "the run could not be carried on; recovery will end it"),
    }
}

async fn try_drive(engine: &Engine, claim: Claim, brief: Option<Brief>, signals: Signals) -> Result<(), Error> {
    let (run, known) = match brief {
        Some(Brief { run, agent, message, ahead }) => (run, Some((agent, message, ahead))),
        None => (engine.store().run(&claim.owner, claim.run_id).await?, None),
    };
    let (room, agent, id) = (run.room_id, run.agent_id, run.id);
    let driven = drive_run(engine, claim, run, known, signals).await;
    engine.clear_skills(room, agent, id).await;
    driven
}

async fn drive_run(
    engine: &Engine,
    claim: Claim,
    run: Run,
    known: Option<(Agent, Message, Option<Ahead>)>,
    signals: Signals,
) -> Result<(), Error> {
    let store = engine.store();
    let ledger = Ledger::new(store.clone(), claim.clone(), run.agent_id);
    // Side by side: somebody waits for the first word.
    let (agent, message, ahead) = match known {
        Some((agent, message, ahead)) => (Ok(agent), Ok(message), ahead),
        None => {
            let agent = store.agent(&claim.owner, run.agent_id);
            let (agent, message) = tokio::join!(agent, store.message(&claim.owner, run.room_id, run.message_id));
            (agent, message, None)
        }
    };
    let agent = match agent {
        Ok(agent) => agent,
        Err(Error::NotFound) => {
            return fail_unstarted(&ledger, &run, RunError::new("agent_deleted", "the agent was deleted")).await;
        }
        Err(error) => return Err(error),
    };
    let Some(provider) = engine.providers().get(&agent.spec.provider) else {
        let message =
            format!("this server has no provider {:?}; it has: {}", agent.spec.provider, engine.providers().names());
        return fail_unstarted(&ledger, &run, RunError::new("no_provider", message)).await;
    };
    let message = message?;
    let told = Told { engine: engine.clone(), claim: claim.clone(), agent: agent.clone(), prompt: run.message_id };
    let (place, known) = ahead.map_or((None, None), |ahead| (ahead.ready, Some((ahead.session, ahead.said))));
    let place = async {
        match place {
            Some(ready) => Ok(ready),
            None => ready(engine, &claim, &run, &agent, &message.text).await,
        }
    };
    let session = async {
        match known {
            Some((session, said)) => Ok(told.of_what_was_said(session, said)),
            None => told.to_its_session(provider.name()).await,
        }
    };
    let (ready, session) = tokio::join!(place, session);
    let Ready { place, remarks, text } = match ready {
        Ok(ready) => ready,
        Err(error) => return fail_unstarted(&ledger, &run, error).await,
    };
    let (knowledge, session) = session?;
    // With what its skills add to its settings.
    let agent = place.agent.clone();
    let message = Message { text: text.unwrap_or_else(|| message.text.clone()), ..message };
    let prompt = match engine.hand_over(&claim.owner, &place.workplace, &message).await {
        Ok(prompt) => prompt,
        Err(error) => return fail_unstarted(&ledger, &run, error).await,
    };
    let memory = Memory::of(store, &claim.owner, agent.id);
    let request = TurnRequest { run_id: run.id, place, prompt, history: told.history(), session, memory };
    start(engine, Cast { ledger, claim, run, agent, provider, knowledge, remarks }, request, signals).await
}

/// Where the agent works and with what.
pub(super) struct Ready {
    place: Place,
    remarks: Vec<Remark>,
    /// What it is asked, where a skill puts that in other words than the message.
    text: Option<String>,
}

async fn ready(engine: &Engine, claim: &Claim, run: &Run, agent: &Agent, message: &str) -> Result<Ready, RunError> {
    let occasion = Occasion::Run { id: run.id, message };
    let mut skilled = engine.skilled(&claim.owner, run.room_id, agent, occasion).await?;
    let text = skilled.prompt.take();
    let (place, remarks) = engine.place(&claim.owner, run.room_id, skilled).await?;
    Ok(Ready { place, remarks, text })
}

/// The same for an agent that needs no skill for this message, and so nothing that would have to be written for its run.
pub(super) async fn unskilled(
    engine: &Engine,
    owner: &Owner,
    room: RoomId,
    agent: &Agent,
    message: &str,
) -> Option<Ready> {
    let skilled = engine.unskilled(owner, room, agent, message).await?;
    let (place, remarks) = engine.place(owner, room, skilled).await.ok()?;
    Some(Ready { place, remarks, text: None })
}

/// Who and what a run consists of.
struct Cast {
    ledger: Ledger,
    claim: Claim,
    run: Run,
    agent: Agent,
    provider: Arc<dyn Provider>,
    knowledge: Knowledge,
    /// What the room should hear of before the first word.
    remarks: Vec<Remark>,
}

async fn start(engine: &Engine, cast: Cast, request: TurnRequest, signals: Signals) -> Result<(), Error> {
    let Cast { ledger, claim, run, agent, provider, knowledge, remarks } = cast;
    let stream_id = MessageId::generate();
    let started = RunStarted { provider: agent.spec.provider.clone(), model: agent.spec.model.clone() };
    let mut events = vec![ledger.event(Entry::new(started)), ledger.event(Entry::new(StreamStart { stream_id }))];
    events.extend(remarks.into_iter().map(|Remark { status, message }| {
        ledger.event(Entry::new(Status { status: status.to_owned(), message, message_id: None }))
    }));
    let running = || vec![Change::RunStatus { run_id: run.id, status: RunStatus::Running }];
    // The provider begins while that is being stored. What it says is read only afterwards, and the claim, which is
    // stored already, keeps the run from ever being started a second time (invariant 12).
    let turn = Turn::begin(provider.as_ref(), request);
    // Its question first, which a provider that is warm puts at once: the answer takes longer than the disk.
    tokio::task::yield_now().await;
    let (committed, remembered) =
        tokio::join!(ledger.commit(events, running), engine.store().remembered_tools(&claim.owner, run.room_id));
    let (committed, remembered) = (committed?, remembered?);
    let limits = engine.config().limits.with(&agent.spec.limits);
    let setting = Setting {
        stream_id,
        limits,
        tools: agent.spec.tools.clone(),
        // Tools that need no asking any more.
        remembered: remembered.into_iter().filter(|tool| tool.agent_id == agent.id).map(|tool| tool.tool).collect(),
        model: agent.spec.model.clone(),
        started_at: committed.at,
    };
    metrics::counter!("greenroom_runs_started_total").increment(1);
    let pump = Pump {
        ledger,
        machine: Machine::new(setting),
        limits,
        grace: engine.config().stop_grace,
        stream_seq: committed.first + 1,
        stream_started_at: committed.at,
        run,
        agent,
        knowledge,
        messages: Messages::default(),
    };
    pump.run(turn, signals).await
}

/// A run that cannot even begin still ends, once, with a reason.
async fn fail_unstarted(ledger: &Ledger, run: &Run, error: RunError) -> Result<(), Error> {
    let duration_ms = u64::try_from(Timestamp::now().since(run.created_at).as_millis()).unwrap_or(u64::MAX);
    let failed = RunFailed { error: error.clone(), limit: None, usage: Usage::default(), cost: None, duration_ms };
    let ending = Ending {
        status: RunStatus::Failed,
        usage: Usage::default(),
        cost: None,
        model: None,
        duration_ms,
        error: Some(error),
        receipt: None,
    };
    let end = || vec![Change::EndRun { run_id: run.id, ending: ending.clone() }];
    ledger.commit(vec![ledger.event(Entry::new(failed))], end).await?;
    Ok(())
}
