//! One run from claim to end.

use super::{
    Ahead, Ledger, Signals,
    knowledge::Knowledge,
    memory::Memory,
    pump::{Messages, Pump, Turn},
    start::{Start, Started},
    told::Told,
};
use crate::{
    Engine,
    equipment::Remark,
    skills::{self, Occasion},
    turn::{Entry, Machine, Setting},
};
use domain::{
    agent::Agent,
    event::{NewEvent, RunFailed, Status},
    ids::RoomId,
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
    pub started: Started,
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
    let (cast, message, ahead) = match brief {
        Some(Brief { run, agent, message, started, ahead }) => {
            (Cast::new(engine, claim, run, agent, Some(started)), message, ahead)
        }
        None => {
            let store = engine.store();
            let run = store.run(&claim.owner, claim.run_id).await?;
            // Side by side: somebody waits for the first word.
            let agent = store.agent(&claim.owner, run.agent_id);
            match tokio::join!(agent, store.message(&claim.owner, run.room_id, run.message_id)) {
                (Err(Error::NotFound), _) => return fail_without_agent(engine, claim, &run).await,
                (agent, message) => (Cast::new(engine, claim, run, agent?, None), message?, None),
            }
        }
    };
    let (room, agent, id) = (cast.run.room_id, cast.agent.id, cast.run.id);
    let driven = match prepare(engine, &cast, message, ahead).await {
        Ok(asked) => start(engine, cast, asked, signals).await,
        Err(error) => Err(error),
    };
    engine.clear_skills(room, agent, id).await;
    driven
}

/// Who a run consists of.
struct Cast {
    ledger: Ledger,
    claim: Claim,
    run: Run,
    agent: Agent,
    /// `None`: the journal does not say so yet.
    started: Option<Started>,
}

impl Cast {
    fn new(engine: &Engine, claim: Claim, run: Run, agent: Agent, started: Option<Started>) -> Self {
        let ledger = Ledger::new(engine.store().clone(), claim.clone(), agent.id);
        Self { ledger, claim, run, agent, started }
    }
}

/// What is asked of whom.
struct Asked {
    provider: Arc<dyn Provider>,
    request: TurnRequest,
    knowledge: Knowledge,
    /// What the room should hear of before the first word.
    remarks: Vec<Remark>,
}

/// The inner error is one for the run: it cannot be asked.
async fn prepare(
    engine: &Engine,
    cast: &Cast,
    message: Message,
    ahead: Option<Ahead>,
) -> Result<Result<Asked, RunError>, Error> {
    let Cast { claim, run, agent, .. } = cast;
    let Some(provider) = engine.providers().get(&agent.spec.provider) else {
        let message =
            format!("this server has no provider {:?}; it has: {}", agent.spec.provider, engine.providers().names());
        return Ok(Err(RunError::new("no_provider", message)));
    };
    let told = Told { engine: engine.clone(), claim: claim.clone(), agent: agent.clone(), prompt: run.message_id };
    let (place, known) = ahead.map_or((None, None), |ahead| (ahead.ready, Some((ahead.session, ahead.said))));
    let place = async {
        match place {
            Some(ready) => Ok(ready),
            None => ready(engine, claim, run, agent, &message.text).await,
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
        Err(error) => return Ok(Err(error)),
    };
    let (knowledge, session) = session?;
    let message = Message { text: text.unwrap_or_else(|| message.text.clone()), ..message };
    let prompt = match engine.hand_over(&claim.owner, &place.workplace, &message).await {
        Ok(prompt) => prompt,
        Err(error) => return Ok(Err(error)),
    };
    let memory = Memory::of(engine.store(), &claim.owner, agent.id);
    let request = TurnRequest { run_id: run.id, place, prompt, history: told.history(), session, memory };
    Ok(Ok(Asked { provider, request, knowledge, remarks }))
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
    let skilled = skills::unskilled(agent, message)?;
    let (place, remarks) = engine.place(owner, room, skilled).await.ok()?;
    Some(Ready { place, remarks, text: None })
}

async fn start(engine: &Engine, cast: Cast, asked: Result<Asked, RunError>, signals: Signals) -> Result<(), Error> {
    let Cast { ledger, claim, run, agent, started } = cast;
    // The provider begins while the rest is being seen to. What it says is read only afterwards, and the claim, which is
    // stored already, keeps the run from ever being started a second time (invariant 12).
    let (turn, agent, knowledge, remarks) = match asked {
        Ok(Asked { provider, request, knowledge, remarks }) => {
            // With what its skills add to its settings.
            let agent = request.agent().clone();
            (Turn::begin(provider.as_ref(), request), agent, knowledge, remarks)
        }
        Err(error) => (Turn::failed(error), agent, Knowledge::default(), Vec::new()),
    };
    // Its question first, which a provider that is warm puts at once: the answer takes longer than the disk.
    tokio::task::yield_now().await;
    let remarks = remarks.into_iter().map(|Remark { status, message }| {
        ledger.event(Entry::new(Status { status: status.to_owned(), message, message_id: None }))
    });
    let started = store_start(&ledger, &run, &agent, started, remarks.collect());
    let (started, remembered) = tokio::join!(started, engine.store().remembered_tools(&claim.owner, run.room_id));
    let (started, remembered) = (started?, remembered?);
    let limits = engine.config().limits.with(&agent.spec.limits);
    let setting = Setting {
        stream_id: started.stream_id,
        limits,
        tools: agent.spec.tools.clone(),
        // Tools that need no asking any more.
        remembered: remembered.into_iter().filter(|tool| tool.agent_id == agent.id).map(|tool| tool.tool).collect(),
        model: agent.spec.model.clone(),
        started_at: started.at,
    };
    metrics::counter!("greenroom_runs_started_total").increment(1);
    let pump = Pump {
        ledger,
        machine: Machine::new(setting),
        limits,
        grace: engine.config().stop_grace,
        started,
        run,
        agent,
        knowledge,
        messages: Messages::default(),
    };
    pump.run(turn, signals).await
}

/// Sees to it that the journal tells of the start and of all `remarks`.
async fn store_start(
    ledger: &Ledger,
    run: &Run,
    agent: &Agent,
    started: Option<Started>,
    remarks: Vec<NewEvent>,
) -> Result<Started, Error> {
    match started {
        Some(started) if remarks.is_empty() => Ok(started),
        Some(started) => ledger.commit(remarks, Vec::new).await.map(|_| started),
        None => {
            let start = Start::new();
            let mut events = start.events(run.id, agent);
            events.extend(remarks);
            let running = || vec![Change::RunStatus { run_id: run.id, status: RunStatus::Running }];
            let committed = ledger.commit(events, running).await?;
            Ok(start.stored(committed.first, committed.at))
        }
    }
}

/// A run whose agent was deleted while it waited still ends, once, with a reason.
async fn fail_without_agent(engine: &Engine, claim: Claim, run: &Run) -> Result<(), Error> {
    let ledger = Ledger::new(engine.store().clone(), claim, run.agent_id);
    let error = RunError::new("agent_deleted", "the agent was deleted");
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
