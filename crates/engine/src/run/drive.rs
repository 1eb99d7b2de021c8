//! One run from claim to end.

use super::{Ledger, Signals, pump::Pump};
use crate::{
    Engine,
    turn::{Entry, Machine, Setting},
};
use domain::{
    agent::Agent,
    event::{RunFailed, RunStarted, StreamStart},
    ids::MessageId,
    message::{Author, Message},
    run::{Run, RunError, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{Place, Provider, Session, Speaker, Spoken, TurnRequest};
use std::sync::Arc;
use store::{
    Error,
    journal::{Change, Ending},
    queue::Claim,
};

/// How much of a room an agent is told when it is asked.
const HISTORY_MESSAGES: u32 = 200;

/// Returns when the run has its terminal event, or when it is not ours any more.
pub(crate) async fn drive(engine: Engine, claim: Claim, signals: Signals) {
    let run_id = claim.run_id;
    match try_drive(&engine, claim, signals).await {
        Ok(()) => {}
        Err(Error::Fenced) => tracing::info!(run = %run_id, "the run was taken over or ended elsewhere"),
        // Its lease is not renewed once it is off the board, or it is found without a driver: recovery ends it.
        Err(error) => tracing::error!(run = %run_id, %error, "the run could not be carried on; recovery will end it"),
    }
}

async fn try_drive(engine: &Engine, claim: Claim, signals: Signals) -> Result<(), Error> {
    let store = engine.store();
    let run = store.run(&claim.owner, claim.run_id).await?;
    let ledger = Ledger::new(store.clone(), claim.clone(), run.agent_id);
    let agent = match store.agent(&claim.owner, run.agent_id).await {
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
    let request = request(engine, &claim, &run, &agent, provider.as_ref()).await?;
    start(engine, ledger, run, agent, provider, request, signals).await
}

async fn start(
    engine: &Engine,
    ledger: Ledger,
    run: Run,
    agent: Agent,
    provider: Arc<dyn Provider>,
    request: TurnRequest,
    signals: Signals,
) -> Result<(), Error> {
    let stream_id = MessageId::generate();
    let started = RunStarted { provider: agent.spec.provider.clone(), model: agent.spec.model.clone() };
    let events = vec![ledger.event(Entry::new(started)), ledger.event(Entry::new(StreamStart { stream_id }))];
    let running = || vec![Change::RunStatus { run_id: run.id, status: RunStatus::Running }];
    let committed = ledger.commit(events, running).await?;
    let limits = engine.config().limits.with(&agent.spec.limits);
    let setting = Setting {
        stream_id,
        limits,
        tools: agent.spec.tools.clone(),
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
    };
    pump.run(provider, request, signals).await
}

async fn request(
    engine: &Engine,
    claim: &Claim,
    run: &Run,
    agent: &Agent,
    provider: &dyn Provider,
) -> Result<TurnRequest, Error> {
    let store = engine.store();
    let mut messages = store.said_before(&claim.owner, claim.room_id, run.queued_seq, HISTORY_MESSAGES).await?;
    let asked = messages.iter().position(|message| message.id == run.message_id);
    let prompt = asked.map(|at| messages.remove(at).text).unwrap_or_default();
    let session = store.provider_session(run.room_id, agent.id, provider.name()).await?;
    Ok(TurnRequest {
        run_id: run.id,
        place: Place {
            room_id: run.room_id,
            agent: agent.clone(),
            workplace: engine.config().folders.workplace(run.room_id),
            home: engine.config().folders.home(agent.id),
            skills: Vec::new(),
            mcp_servers: Vec::new(),
        },
        prompt,
        history: messages.iter().map(|message| spoken(message, agent)).collect(),
        session: session.map(|id| Session { id, unheard: Vec::new() }),
    })
}

fn spoken(message: &Message, agent: &Agent) -> Spoken {
    let speaker = match &message.author {
        Author::Person { name } => Speaker::Person(name.to_string()),
        Author::Agent { id, .. } if *id == agent.id => Speaker::Itself,
        Author::Agent { name, .. } => Speaker::OtherAgent(name.to_string()),
    };
    Spoken { speaker, text: message.text.clone() }
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
