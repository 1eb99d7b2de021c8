//! Executes one run from claim to end: prepares the turn, starts the provider and hands over to `pump`.

use super::{
    ActiveRun, ClaimedRun, RunJournal, RunsAbove, StoredStart,
    context::{GivenContext, GivenSession},
    pump::{RunningTurn, SteeredMessages, TurnPump},
    room_view::{RoomView, YOUR_TURN_AGAIN},
    session_marks::SessionMarks,
    signals::SignalInbox,
    start::start_events,
    transcript::{AskedQuestion, RoomTranscript, TurnKnowledge},
};
use crate::{
    Engine,
    error::budget_message,
    mcp_servers::RunNotice,
    skills::{self, SkillPurpose},
    traces::{self, TracedRun},
    turn::{BUDGET_USED_UP, PendingEvent, TurnMachine, TurnSettings},
    work::TakenSlot,
};
use domain::{
    agent::Agent,
    budget::BudgetSubjects,
    event::{NewEvent, Status},
    ids::{AgentId, MessageId, RoomId, RunId},
    message::Message,
    owner::Owner,
    prices::PriceSource,
    run::{Run, RunError, RunStatus},
    time::Timestamp,
    usage::Cost,
};
use providers::{AgentWorkspace, LaterMessages, Provider, TurnRequest, gateway::RunMeter};
use std::sync::Arc;
use store::{StoreError, journal::RowChange, queue::Claim};

/// Drives a run that was claimed from the queue. Returns when the run has its terminal event, or when another worker has
/// taken it over.
pub(crate) async fn drive_queued(engine: Engine, claim: Claim, slot: TakenSlot, active: ActiveRun) {
    let run_id = claim.run_id;
    let driven = match ClaimedRun::load(&engine, claim, slot, active).await {
        Ok(Some(run)) => try_drive(&engine, run).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    report(run_id, driven);
}

/// As `drive_queued`, for a run that brings its data with it.
pub(crate) async fn drive(engine: Engine, run: ClaimedRun) {
    let run_id = run.claim.run_id;
    report(run_id, try_drive(&engine, run).await);
}

fn report(run: RunId, driven: Result<(), StoreError>) {
    match driven {
        Ok(()) => {}
        Err(StoreError::Fenced) => tracing::info!(%run, "the run was taken over or ended elsewhere"),
        // The run is no longer in `ActiveRuns`: recovery finds it without a driver and ends it.
        Err(error) => tracing::error!(%run, %error, "the run could not continue; recovery will end it"),
    }
}

async fn try_drive(engine: &Engine, mut run: ClaimedRun) -> Result<(), StoreError> {
    let (room, agent, id) = (run.run.room_id, run.agent.id, run.run.id);
    let driven = async {
        let above = RunsAbove::load(engine, &run.claim.owner, &run.run).await?;
        let prepared = prepare_turn(engine, &mut run, &above).await?;
        start_turn(engine, run, above, prepared).await
    };
    let driven = driven.await;
    engine.remove_run_skills(room, agent, id).await;
    driven
}

/// A turn that is ready to start.
struct PreparedTurn {
    provider: Arc<dyn Provider>,
    request: TurnRequest,
    /// Whether the room keeps the original data of every piece.
    keeps_raw: bool,
    session_marks: SessionMarks,
    /// The room's head when the messages for the turn were read.
    known_seq: u64,
    /// Notices to store before the first output.
    notices: Vec<RunNotice>,
    /// What the run is given, to be read back.
    given: GivenContext,
}

/// The inner error ends the run: the provider cannot be called.
async fn prepare_turn(
    engine: &Engine,
    claimed: &mut ClaimedRun,
    above: &RunsAbove,
) -> Result<Result<PreparedTurn, RunError>, StoreError> {
    let prefetch = claimed.prefetch.take();
    let ClaimedRun { claim, run, agent, message, .. } = &*claimed;
    // A run that started with its message was checked with it.
    if claimed.started.is_none()
        && let Some(error) = queued_over_budget(engine, claimed, above).await?
    {
        return Ok(Err(error));
    }
    // A run that started with its message answers it for the first time.
    let has_answered = async {
        match claimed.started {
            Some(_) => Ok(false),
            None => engine.store().has_answered(&claim.owner, message.id, agent.id, claim.queued_seq).await,
        }
    };
    let (room, has_answered) = tokio::join!(RoomView::load(engine, &claim.owner, claim.room_id), has_answered);
    let room = room?;
    let question = AskedQuestion {
        message_id: message.id,
        seq: message.seq,
        in_company: room.has_company(),
        reacts: has_answered? && room.has_company(),
        unheard: room.unheard_by(agent.id),
    };
    let transcript = RoomTranscript { engine: engine.clone(), claim: claim.clone(), agent_id: agent.id, question };
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
            None => transcript.load(&agent.spec.provider).await,
        }
    };
    let (workspace, knowledge) = tokio::join!(workspace, knowledge);
    let PreparedWorkspace { workspace: mut place, notices, prompt: text } = match workspace {
        Ok(workspace) => workspace,
        Err(error) => return Ok(Err(error)),
    };
    let provider = match engine.provider_for_run(&claim.owner, &agent.spec.provider, &place.provider_settings) {
        Ok(provider) => provider,
        Err(error) => return Ok(Err(error)),
    };
    room.apply_to(&mut place.agent);
    // After its skills, which may allow tools.
    above.restrict(&mut place.agent.spec.tools);
    place.has_company = room.has_company();
    place.depth = run.depth;
    let TurnKnowledge { head: known_seq, marks: session_marks, session, later } = knowledge?;
    let asked_by = message.author.name().to_string();
    let message = Message { text: text.unwrap_or_else(|| message.text.clone()), ..message.clone() };
    let prompt = match transcript.question.reacts {
        true => YOUR_TURN_AGAIN.to_owned(),
        false => match engine.place_attachments(&claim.owner, &place.folder, &message).await {
            Ok(prompt) => prompt,
            Err(error) => return Ok(Err(error)),
        },
    };
    let given = GivenContext {
        provider: provider.name().to_owned(),
        model: place.agent.spec.model.clone(),
        system_prompt: place.agent.spec.system_prompt.clone(),
        prompt: prompt.clone(),
        asked_by: asked_by.clone(),
        question: transcript.question.clone(),
        known_seq,
        queued_seq: claim.posts_before(),
        session: session_marks.record().map(GivenSession::of),
    };
    // The files of a message that was answered before are in the history.
    let attachments = if transcript.question.reacts { Vec::new() } else { engine.attached_files(&message) };
    let later = LaterMessages { asked_by, messages: later };
    let history = transcript.history(known_seq);
    let meter = RunMeter::default();
    let request = TurnRequest { run_id: run.id, workspace: place, prompt, attachments, later, history, session, meter };
    let keeps_raw = room.keeps_raw();
    Ok(Ok(PreparedTurn { provider, request, keeps_raw, session_marks, known_seq, notices, given }))
}

/// The error of a run whose budget was used up while it waited in the queue.
async fn queued_over_budget(
    engine: &Engine,
    claimed: &ClaimedRun,
    above: &RunsAbove,
) -> Result<Option<RunError>, StoreError> {
    let ClaimedRun { claim, agent, message, .. } = claimed;
    let agents: Vec<AgentId> = [agent.id].into_iter().chain(above.agents()).collect();
    let rooms: Vec<RoomId> = [claim.room_id].into_iter().chain(above.rooms()).collect();
    let user = message.author.user_id().or(above.user());
    let subjects = BudgetSubjects { user, agents: &agents, rooms: &rooms };
    let times = [Timestamp::now(), claimed.run.created_at];
    let used_up = engine.store().check_budget(&claim.owner, subjects, &times, Cost::ZERO).await?;
    Ok(used_up.map(|status| RunError::new(BUDGET_USED_UP, budget_message(&status))))
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
    let (prepared, has_project_skills) =
        tokio::join!(engine.prepare_agent_workspace(owner, room, skilled), engine.may_have_project_skills(owner, room));
    let (place, notices) = prepared.ok().filter(|_| !has_project_skills)?;
    Some(PreparedWorkspace { workspace: place, notices, prompt: None })
}

async fn start_turn(
    engine: &Engine,
    claimed: ClaimedRun,
    above: RunsAbove,
    prepared: Result<PreparedTurn, RunError>,
) -> Result<(), StoreError> {
    let journal = claimed.journal(engine);
    let ClaimedRun { claim, run, agent, message, started, slot, active, .. } = claimed;
    let user = message.author.user_id().or(above.user());
    // The provider starts before the start is stored. Its output is read only afterwards, and the stored claim prevents
    // a second start of the run (invariant 12).
    let prices = prepared.as_ref().map_or_else(|_| PriceSource::default(), |turn| turn.provider.price_source());
    let meter = prepared.as_ref().map_or_else(|_| RunMeter::default(), |turn| turn.request.meter.clone());
    let (turn, agent, session_marks, known_seq, notices, given) = match prepared {
        Ok(PreparedTurn { provider, request, keeps_raw, session_marks, known_seq, notices, given }) => {
            // Includes the settings that its skills add.
            let agent = request.agent().clone();
            let given = given.stored_for(run.id)?;
            let turn = RunningTurn::start(provider.as_ref(), request, keeps_raw);
            (turn, agent, session_marks, known_seq, notices, Some(given))
        }
        Err(error) => (RunningTurn::failed(error), agent, SessionMarks::default(), 0, Vec::new(), None),
    };
    // Lets a warm provider send its request before this task writes to disk: the response takes longer than the commit.
    tokio::task::yield_now().await;
    let notices = notices
        .into_iter()
        .map(|RunNotice { status, message }| journal.event(PendingEvent::new(Status::new(status, message))));
    let started = store_start(&journal, &run, &agent, started, notices.collect());
    let (started, remembered) = tokio::join!(started, engine.store().remembered_tools(&claim.owner, run.room_id));
    let (started, remembered) = (started?, remembered?);
    let limits = above.limits(engine.config().limits.with(&agent.spec.limits));
    let settings = TurnSettings {
        stream_id: started.stream_id,
        limits,
        tools: agent.spec.tools.clone(),
        remembered: remembered.into_iter().filter(|tool| tool.agent_id == agent.id).map(|tool| tool.rule).collect(),
        model: agent.spec.model.clone(),
        prices,
        started_at: started.started_at,
    };
    metrics::counter!("greenroom_runs_started_total").increment(1);
    let trace = traces::begin_run(run.id, || TracedRun {
        run_id: run.id,
        room_id: run.room_id,
        agent_id: agent.id,
        agent_name: agent.spec.name.to_string(),
        provider: agent.spec.provider.clone(),
        model: agent.spec.model.clone(),
        prompt: message.text.clone(),
        started_at: started.started_at,
    });
    let pump = TurnPump {
        journal,
        machine: TurnMachine::new(settings),
        limits,
        stop_grace: engine.config().stop_grace,
        started,
        known_seq,
        run,
        agent,
        user,
        above,
        session_marks,
        given,
        steering: SteeredMessages::default(),
        inbox: SignalInbox::new(engine.clone(), claim),
        meter,
        trace,
    };
    let ended = pump.run(turn, active).await;
    drop(slot);
    ended
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
            let stream_id = MessageId::generate();
            let mut events = start_events(run.id, agent, stream_id);
            events.extend(notices);
            let running = || vec![RowChange::RunStatus { run_id: run.id, status: RunStatus::Running }];
            let committed = journal.commit(events, running).await?;
            Ok(StoredStart::new(stream_id, committed.first_seq, committed.at))
        }
    }
}
