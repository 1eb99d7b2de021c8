//! Executes one run from claim to end: prepares the turn, starts the provider and hands over to `pump`.

use super::{
    Prefetch, RunEnd, RunJournal, RunWakeups,
    memory::StoredAgentMemory,
    pump::{RunningTurn, SteeredMessages, TurnPump},
    session_marks::SessionMarks,
    signals::SignalInbox,
    start::{PendingStart, StoredStart},
    transcript::{RoomTranscript, TurnKnowledge},
};
use crate::{
    Engine,
    mcp_servers::RunNotice,
    skills::{self, SkillPurpose},
    turn::{PendingEvent, TurnMachine, TurnSettings},
};
use domain::{
    agent::Agent,
    event::{NewEvent, Status},
    ids::RoomId,
    message::Message,
    owner::Owner,
    run::{Run, RunError, RunStatus},
};
use providers::{AgentWorkspace, Provider, TurnEnd, TurnOutcome, TurnRequest};
use std::sync::Arc;
use store::{StoreError, journal::RowChange, queue::Claim};

/// The data of a run that was claimed in the commit that queued it; other runs read it from the store.
pub(crate) struct PreloadedRun {
    pub run: Run,
    pub agent: Agent,
    pub message: Message,
    pub started: StoredStart,
    pub prefetch: Option<Prefetch>,
}

/// Returns when the run has its terminal event, or when another worker has taken it over.
pub(crate) async fn drive(engine: Engine, claim: Claim, preloaded: Option<PreloadedRun>, wakeups: RunWakeups) {
    let run_id = claim.run_id;
    match try_drive(&engine, claim, preloaded, wakeups).await {
        Ok(()) => {}
        Err(StoreError::Fenced) => tracing::info!(run = %run_id, "the run was taken over or ended elsewhere"),
        // The run is no longer in `ActiveRuns`: recovery finds it without a driver and ends it.
        Err(error) => tracing::error!(run = %run_id, %error, "the run could not continue; recovery will end it"),
    }
}

async fn try_drive(
    engine: &Engine,
    claim: Claim,
    preloaded: Option<PreloadedRun>,
    wakeups: RunWakeups,
) -> Result<(), StoreError> {
    let (context, message, prefetch) = match preloaded {
        Some(PreloadedRun { run, agent, message, started, prefetch }) => {
            (RunContext::new(engine, claim, run, agent, Some(started)), message, prefetch)
        }
        None => {
            let store = engine.store();
            let run = store.run(&claim.owner, claim.run_id).await?;
            // Concurrently, to reduce the time to first token.
            let agent = store.agent(&claim.owner, run.agent_id);
            match tokio::join!(agent, store.message(&claim.owner, run.room_id, run.message_id)) {
                (Err(StoreError::NotFound), _) => return fail_without_agent(engine, claim, &run).await,
                (agent, message) => (RunContext::new(engine, claim, run, agent?, None), message?, None),
            }
        }
    };
    let (room, agent, id) = (context.run.room_id, context.agent.id, context.run.id);
    let driven = match prepare_turn(engine, &context, message, prefetch).await {
        Ok(prepared) => start_turn(engine, context, prepared, wakeups).await,
        Err(error) => Err(error),
    };
    engine.remove_run_skills(room, agent, id).await;
    driven
}

/// A run with its claim, its agent and its access to the journal.
struct RunContext {
    journal: RunJournal,
    claim: Claim,
    run: Run,
    agent: Agent,
    /// `None` if the start is not stored yet.
    started: Option<StoredStart>,
}

impl RunContext {
    fn new(engine: &Engine, claim: Claim, run: Run, agent: Agent, started: Option<StoredStart>) -> Self {
        let journal = RunJournal::new(engine.store().clone(), claim.clone(), agent.id);
        Self { journal, claim, run, agent, started }
    }
}

/// A turn that is ready to start.
struct PreparedTurn {
    provider: Arc<dyn Provider>,
    request: TurnRequest,
    session_marks: SessionMarks,
    /// The room's head when the messages for the turn were read.
    known_seq: u64,
    /// Notices to store before the first output.
    notices: Vec<RunNotice>,
}

/// The inner error ends the run: the provider cannot be called.
async fn prepare_turn(
    engine: &Engine,
    context: &RunContext,
    message: Message,
    prefetch: Option<Prefetch>,
) -> Result<Result<PreparedTurn, RunError>, StoreError> {
    let RunContext { claim, run, agent, .. } = context;
    let Some(provider) = engine.providers().get(&agent.spec.provider) else {
        let message =
            format!("this server has no provider {:?}; it has: {}", agent.spec.provider, engine.providers().names());
        return Ok(Err(RunError::new("no_provider", message)));
    };
    let transcript = RoomTranscript {
        engine: engine.clone(),
        claim: claim.clone(),
        agent: agent.clone(),
        prompt_id: run.message_id,
    };
    let (workspace, known) =
        prefetch.map_or((None, None), |read| (read.workspace, Some((read.head, read.session, read.messages))));
    let workspace = async {
        match workspace {
            Some(prepared) => Ok(prepared),
            None => prepare_workspace(engine, claim, run, agent, &message.text).await,
        }
    };
    let knowledge = async {
        match known {
            Some((head, session, messages)) => Ok(transcript.build(head, session, messages)),
            None => transcript.load(provider.name()).await,
        }
    };
    let (workspace, knowledge) = tokio::join!(workspace, knowledge);
    let PreparedWorkspace { workspace: place, notices, prompt: text } = match workspace {
        Ok(workspace) => workspace,
        Err(error) => return Ok(Err(error)),
    };
    let TurnKnowledge { head: known_seq, marks: session_marks, session } = knowledge?;
    let message = Message { text: text.unwrap_or_else(|| message.text.clone()), ..message };
    let prompt = match engine.place_attachments(&claim.owner, &place.folder, &message).await {
        Ok(prompt) => prompt,
        Err(error) => return Ok(Err(error)),
    };
    let memory = StoredAgentMemory::of(engine.store(), &claim.owner, run.id, agent.id);
    let history = transcript.history(known_seq);
    let request = TurnRequest { run_id: run.id, workspace: place, prompt, history, session, memory };
    Ok(Ok(PreparedTurn { provider, request, session_marks, known_seq, notices }))
}

/// The agent's workspace, with notices for the room.
pub(super) struct PreparedWorkspace {
    workspace: AgentWorkspace,
    notices: Vec<RunNotice>,
    /// The prompt, if a called skill replaces the text of the message.
    prompt: Option<String>,
}

async fn prepare_workspace(
    engine: &Engine,
    claim: &Claim,
    run: &Run,
    agent: &Agent,
    message: &str,
) -> Result<PreparedWorkspace, RunError> {
    let purpose = SkillPurpose::Run { id: run.id, message };
    let mut skilled = engine.prepare_skills(&claim.owner, run.room_id, agent, purpose).await?;
    let text = skilled.prompt.take();
    let (place, notices) = engine.prepare_agent_workspace(&claim.owner, run.room_id, skilled).await?;
    Ok(PreparedWorkspace { workspace: place, notices, prompt: text })
}

/// As `prepare_workspace`, for an agent that needs no skill for this message, so that no file has to be written for its
/// run. `None` if skills are needed or on an error.
pub(super) async fn prepare_without_skills(
    engine: &Engine,
    owner: &Owner,
    room: RoomId,
    agent: &Agent,
    message: &str,
) -> Option<PreparedWorkspace> {
    let skilled = skills::without_skills(agent, message)?;
    let (place, notices) = engine.prepare_agent_workspace(owner, room, skilled).await.ok()?;
    Some(PreparedWorkspace { workspace: place, notices, prompt: None })
}

async fn start_turn(
    engine: &Engine,
    context: RunContext,
    prepared: Result<PreparedTurn, RunError>,
    wakeups: RunWakeups,
) -> Result<(), StoreError> {
    let RunContext { journal, claim, run, agent, started } = context;
    // The provider starts before the start is stored. Its output is read only afterwards, and the stored claim prevents
    // a second start of the run (invariant 12).
    let (turn, agent, session_marks, known_seq, notices) = match prepared {
        Ok(PreparedTurn { provider, request, session_marks, known_seq, notices }) => {
            // Includes the settings that its skills add.
            let agent = request.agent().clone();
            (RunningTurn::start(provider.as_ref(), request), agent, session_marks, known_seq, notices)
        }
        Err(error) => (RunningTurn::failed(error), agent, SessionMarks::default(), 0, Vec::new()),
    };
    // Lets a warm provider send its request before this task writes to disk: the response takes longer than the commit.
    tokio::task::yield_now().await;
    let notices = notices.into_iter().map(|RunNotice { status, message }| {
        journal.event(PendingEvent::new(Status { status: status.to_owned(), message, message_id: None }))
    });
    let started = store_start(&journal, &run, &agent, started, notices.collect());
    let (started, remembered) = tokio::join!(started, engine.store().remembered_tools(&claim.owner, run.room_id));
    let (started, remembered) = (started?, remembered?);
    let limits = engine.config().limits.with(&agent.spec.limits);
    let settings = TurnSettings {
        stream_id: started.stream_id,
        limits,
        tools: agent.spec.tools.clone(),
        remembered: remembered.into_iter().filter(|tool| tool.agent_id == agent.id).map(|tool| tool.tool).collect(),
        model: agent.spec.model.clone(),
        started_at: started.started_at,
    };
    metrics::counter!("greenroom_runs_started_total").increment(1);
    let pump = TurnPump {
        journal,
        machine: TurnMachine::new(settings),
        limits,
        stop_grace: engine.config().stop_grace,
        started,
        known_seq,
        run,
        agent,
        session_marks,
        steering: SteeredMessages::default(),
        inbox: SignalInbox::new(engine.clone(), claim),
    };
    pump.run(turn, wakeups).await
}

/// Stores the start, unless it is stored already, and all `notices`.
async fn store_start(
    journal: &RunJournal,
    run: &Run,
    agent: &Agent,
    started: Option<StoredStart>,
    notices: Vec<NewEvent>,
) -> Result<StoredStart, StoreError> {
    match started {
        Some(started) if notices.is_empty() => Ok(started),
        Some(started) => journal.commit(notices, Vec::new).await.map(|_| started),
        None => {
            let start = PendingStart::new();
            let mut events = start.events(run.id, agent);
            events.extend(notices);
            let running = || vec![RowChange::RunStatus { run_id: run.id, status: RunStatus::Running }];
            let committed = journal.commit(events, running).await?;
            Ok(start.into_stored(committed.first_seq, committed.at))
        }
    }
}

/// Ends a run whose agent was deleted while it was queued.
async fn fail_without_agent(engine: &Engine, claim: Claim, run: &Run) -> Result<(), StoreError> {
    let journal = RunJournal::new(engine.store().clone(), claim, run.agent_id);
    let outcome = TurnOutcome::from_end(TurnEnd::Failed(RunError::new("agent_deleted", "the agent was deleted")));
    let end = RunEnd::without_driver(&journal, run, &[], None, None, outcome)?;
    journal.end(end).await
}
