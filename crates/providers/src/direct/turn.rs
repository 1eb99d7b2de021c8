//! One turn: runs the effects of the tool loop, and feeds it the results.

use super::{
    DirectShared,
    attachments::{AttachmentLimits, AttachmentParts},
    client::{AnswerStream, ModelClient},
    conversation::UserPart,
    prompt, retry,
    skills::{SkillInstructions, read_skills},
    tool_loop::{LoopEffect, LoopInput, ModelCallPurpose, ToolLoop, ToolLoopSettings},
    tools::{FinishedCall, ToolReport, ToolSet, host_tool_outcome},
    wire::{self, AnswerPiece, ModelRequest, OfferedTool, failure::ModelFailure, names::ToolNames},
    xml,
};
use crate::{
    AttachedFile, HistoryMessage, ProviderEvent, SavedInSession, TurnChannel, TurnEnd, TurnEvent, TurnOutcome,
    TurnRequest,
    host_tools::{
        CallOrigin, HostToolAgent, HostToolCalls, HostToolEvent,
        tools::{READ_ATTACHMENT, SKILL},
    },
    turn_port::{PortEvent, TurnPort},
};
use domain::{
    agent::{ModelOptions, RunTools, ToolCalling},
    ids::{ApprovalId, MessageId},
    run::{Receipt, RunError},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    future::{Future, pending},
    hash::{BuildHasher as _, Hasher as _},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// How long canceled tools may take to end.
const TOOLS_STOP: Duration = Duration::from_secs(5);
/// Buffered progress reports of tools.
const REPORT_BUFFER: usize = 64;

pub async fn turn(shared: Arc<DirectShared>, request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let mut port = TurnPort::new(channel);
    let prepared = port.unless_stopped(prepare(&shared, &request)).await.unwrap_or(Err(TurnEnd::Stopped));
    let outcome = match prepared {
        Ok(PreparedLoop { notices, tool_set, tool_loop, template, agent, files }) => {
            notices.into_iter().for_each(|notice| port.send(notice));
            let host_calls = HostToolCalls::new(agent, request.run_id);
            let runner = TurnRunner::new(&shared, &mut port, tool_set, host_calls, tool_loop, template, files);
            runner.run().await
        }
        Err(end) => TurnOutcome::from_end(end),
    };
    port.finish().await;
    outcome
}

/// The part of the model request that is the same in the whole turn.
struct RequestTemplate {
    model: String,
    system: String,
    offers: Vec<OfferedTool>,
    names: ToolNames,
    options: ModelOptions,
}

struct PreparedLoop {
    notices: Vec<TurnEvent>,
    tool_set: ToolSet,
    tool_loop: ToolLoop,
    template: RequestTemplate,
    agent: HostToolAgent,
    files: AttachmentParts,
}

async fn prepare(shared: &DirectShared, request: &TurnRequest) -> Result<PreparedLoop, TurnEnd> {
    let spec = &request.agent().spec;
    let options = spec.model_options.clone().unwrap_or_default();
    let Some(model) = spec.model.clone().or_else(|| shared.config.default_model.clone()) else {
        let message = format!("set a model in the agent's settings: {} has no default model", shared.config.name);
        return Err(TurnEnd::Failed(RunError::new("no_model", message)));
    };
    if let Some(advice) = shared.config.missing_key() {
        return Err(TurnEnd::Failed(RunError::new("authentication_failed", advice)));
    }
    let history = request.history.read().await.map_err(TurnEnd::Failed)?;
    let (skills, mut notices) = skills(request).await;
    let mut files = load_files(shared, request, &history).await;
    notices.append(&mut files.notices);
    let older = history.iter().flat_map(|message| message.attachments.iter().cloned());
    let agent = HostToolAgent::on_model_api(request.workspace.clone())
        .with_attachments(older.chain(request.attachments.iter().cloned()).collect());
    let (tool_set, problems) = ToolSet::load(&agent, &shared.toolbox, &spec.tools).await;
    notices.extend(problems);

    let is_xml = options.tool_calling == ToolCalling::Xml;
    let instructions = if is_xml { xml::instructions(&tool_set.offered) } else { String::new() };
    let has_skill_tool = tool_set.tools.contains_key(SKILL);
    let system = prompt::system_prompt(spec.system_prompt.as_deref(), &skills, has_skill_tool, &instructions);
    let mut parts: Vec<UserPart> = files.of(&request.attachments);
    if let Some(skill) = prompt::invoked_skill(&request.prompt, &skills) {
        parts.push(format!("<skill name=\"{}\">\n{}\n</skill>", skill.name, skill.body.trim()).into());
    }
    parts.push(request.prompt.clone().into());
    let settings = ToolLoopSettings {
        tools: tool_set.tools.clone(),
        is_xml,
        runs_while_streaming: options.run_tools == RunTools::WhileStreaming,
        is_parallel: options.parallel,
        context_window: options.context_window.unwrap_or(shared.config.context_window).into(),
        answer_tokens: options.max_output_tokens.unwrap_or(shared.config.answer_tokens).into(),
        fixed_bytes: system.len() + if is_xml { 0 } else { tool_set.bytes() },
        retries: shared.config.retries,
        key_advice: shared.config.key_advice(),
    };
    let tool_loop = ToolLoop::new(settings, prompt::conversation(&history, &files, parts, &request.later.messages));
    let names = ToolNames::new(tool_set.offered.iter().map(|offer| offer.name.as_str()));
    let offers = if is_xml { Vec::new() } else { tool_set.offered.clone() };
    let template = RequestTemplate { model, system, offers, names, options };
    Ok(PreparedLoop { notices, tool_set, tool_loop, template, agent, files })
}

async fn load_files(shared: &DirectShared, request: &TurnRequest, history: &[HistoryMessage]) -> AttachmentParts {
    let limits = AttachmentLimits::of(shared.config.api, shared.config.is_openai_service());
    let (prompt, history) = (request.attachments.clone(), history.to_vec());
    if prompt.is_empty() && history.iter().all(|message| message.attachments.is_empty()) {
        return AttachmentParts::new(limits);
    }
    let loaded = tokio::task::spawn_blocking(move || AttachmentParts::load(&prompt, &history, limits)).await;
    loaded.unwrap_or_else(|error| {
        tracing::error!(%error, "reading attachments panicked");
        AttachmentParts::new(limits)
    })
}

async fn skills(request: &TurnRequest) -> (Vec<SkillInstructions>, Vec<TurnEvent>) {
    let folders = request.workspace.skills.clone();
    if folders.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let (skills, problems) = match tokio::task::spawn_blocking(move || read_skills(&folders)).await {
        Ok(read) => read,
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    let notice = |message| TurnEvent::Status { status: "skill_unreadable".into(), message };
    (skills, problems.into_iter().map(notice).collect())
}

/// The state of the connection to the model.
enum ModelConnection {
    Idle,
    Calling(Pin<Box<dyn Future<Output = Result<AnswerStream, ModelFailure>> + Send>>),
    Streaming(AnswerStream),
    WaitingToRetry(Instant),
}

impl ModelConnection {
    /// Waits for the next inputs of the tool loop. Cancel safe.
    async fn next(&mut self) -> Vec<LoopInput> {
        match self {
            Self::Idle => pending().await,
            Self::Calling(call) => {
                let answered = call.await;
                match answered {
                    Ok(answering) => {
                        *self = Self::Streaming(answering);
                        Vec::new()
                    }
                    Err(failure) => {
                        *self = Self::Idle;
                        vec![LoopInput::AnswerEnded(Err(failure))]
                    }
                }
            }
            Self::Streaming(answering) => {
                let (pieces, end) = answering.next().await;
                if end.is_some() {
                    *self = Self::Idle;
                }
                pieces.into_iter().map(LoopInput::Piece).chain(end.map(LoopInput::AnswerEnded)).collect()
            }
            Self::WaitingToRetry(until) => {
                sleep_until(*until).await;
                *self = Self::Idle;
                vec![LoopInput::RetryDue]
            }
        }
    }
}

struct TurnRunner<'a> {
    shared: &'a DirectShared,
    port: &'a mut TurnPort,
    tool_set: ToolSet,
    host_calls: HostToolCalls<String>,
    tool_loop: ToolLoop,
    template: RequestTemplate,
    connection: ModelConnection,
    tools: JoinSet<FinishedCall>,
    running: BTreeMap<tokio::task::Id, String>,
    cancel: CancellationToken,
    reports: mpsc::Sender<ToolReport>,
    reported: mpsc::Receiver<ToolReport>,
    approvals: BTreeMap<ApprovalId, String>,
    stopped: Option<Instant>,
    files: AttachmentParts,
    /// The API's event whose pieces are being handled.
    raw: Option<String>,
}

/// Something that the runner waits for.
enum RunnerEvent {
    Inputs(Vec<LoopInput>),
    FromEngine(PortEvent),
    ToolEnded(Result<(tokio::task::Id, FinishedCall), JoinError>),
    ToolReported(ToolReport),
    HostTool(HostToolEvent<String>),
}

impl<'a> TurnRunner<'a> {
    fn new(
        shared: &'a DirectShared,
        port: &'a mut TurnPort,
        tool_set: ToolSet,
        host_calls: HostToolCalls<String>,
        tool_loop: ToolLoop,
        template: RequestTemplate,
        files: AttachmentParts,
    ) -> Self {
        let (reports, reported) = mpsc::channel(REPORT_BUFFER);
        Self {
            shared,
            port,
            tool_set,
            host_calls,
            tool_loop,
            template,
            connection: ModelConnection::Idle,
            tools: JoinSet::new(),
            running: BTreeMap::new(),
            cancel: CancellationToken::new(),
            reports,
            reported,
            approvals: BTreeMap::new(),
            stopped: None,
            files,
            raw: None,
        }
    }

    async fn run(mut self) -> TurnOutcome {
        let mut inputs = vec![LoopInput::Begin];
        let end = 'turn: loop {
            for input in inputs.drain(..) {
                // The first event of the pieces that it is about gets it.
                if let LoopInput::Piece(AnswerPiece::Raw(data)) = input {
                    self.raw = Some(data);
                    continue;
                }
                let mut effects = Vec::new();
                self.tool_loop.on(input, &mut effects);
                for effect in effects {
                    if let Some(end) = self.apply(effect) {
                        break 'turn end;
                    }
                }
            }
            self.raw = None;
            let event = tokio::select! {
                event = self.port.next() => RunnerEvent::FromEngine(event),
                more = self.connection.next(), if self.port.has_capacity() => RunnerEvent::Inputs(more),
                Some(ended) = self.tools.join_next_with_id() => RunnerEvent::ToolEnded(ended),
                event = self.host_calls.next(), if self.port.has_capacity() => RunnerEvent::HostTool(event),
                Some(report) = self.reported.recv(), if self.port.has_capacity() => RunnerEvent::ToolReported(report),
            };
            inputs = self.inputs_of(event).await;
        };
        // Running tools are canceled, and the turn ends when they have ended.
        self.connection = ModelConnection::Idle;
        self.cancel.cancel();
        let ending = async {
            while let Some(ended) = self.tools.join_next().await {
                if let Ok(FinishedCall { call, outcome, .. }) = ended {
                    let content = outcome.for_room;
                    self.port.send(TurnEvent::ToolResult { id: call, content, is_error: outcome.is_error });
                }
            }
        };
        if timeout(TOOLS_STOP, ending).await.is_err() {
            self.tools.shutdown().await;
        }
        self.host_calls.shut_down().await;
        let millis = self.stopped.map_or(0, |since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        TurnOutcome { end, receipt: Receipt { millis, ..Receipt::default() }, saved: SavedInSession::Nothing }
    }

    /// Translates an event into inputs of the tool loop.
    async fn inputs_of(&mut self, event: RunnerEvent) -> Vec<LoopInput> {
        match event {
            RunnerEvent::Inputs(inputs) => inputs.into_iter().map(|input| self.named(input)).collect(),
            RunnerEvent::FromEngine(PortEvent::CommandsEnded | PortEvent::Sent) => Vec::new(),
            RunnerEvent::FromEngine(PortEvent::Stop) => {
                self.stopped = Some(Instant::now());
                vec![LoopInput::Stop]
            }
            RunnerEvent::FromEngine(PortEvent::ResolveApproval { approval, decision, input }) => {
                match (self.host_calls.answer(approval, decision, input), self.approvals.remove(&approval)) {
                    (Err((decision, input)), Some(call)) => vec![LoopInput::Decided { call, decision, input }],
                    _ => Vec::new(),
                }
            }
            RunnerEvent::FromEngine(PortEvent::Steer { message, text, attachments }) => {
                self.steer(message, text, attachments).await.into_iter().collect()
            }
            RunnerEvent::ToolEnded(Ok((task, FinishedCall { call, outcome, notices }))) => {
                self.running.remove(&task);
                notices.into_iter().for_each(|notice| self.port.send(notice));
                vec![LoopInput::ToolEnded { call, outcome }]
            }
            RunnerEvent::ToolEnded(Err(error)) => {
                tracing::error!(%error, "tool task panicked");
                let outcome =
                    super::tool_loop::ToolCallOutcome::text("The tool crashed; its effects are unknown.", true);
                self.running
                    .remove(&error.id())
                    .map(|call| LoopInput::ToolEnded { call, outcome })
                    .into_iter()
                    .collect()
            }
            RunnerEvent::HostTool(HostToolEvent::Report(event)) => {
                self.port.send(event);
                Vec::new()
            }
            RunnerEvent::HostTool(HostToolEvent::Ended { reply_to: call, outcome }) => {
                vec![LoopInput::ToolEnded { call, outcome: host_tool_outcome(outcome) }]
            }
            RunnerEvent::ToolReported((id, delta)) => {
                self.port.send(TurnEvent::ToolOutput { id, delta });
                Vec::new()
            }
        }
    }

    /// A message for the answer in progress, with its files.
    async fn steer(&mut self, message: MessageId, text: String, files: Vec<AttachedFile>) -> Option<LoopInput> {
        if files.is_empty() {
            return Some(LoopInput::Steer { message, parts: vec![text.into()] });
        }
        let limits = self.files.limits();
        let mut all = std::mem::replace(&mut self.files, AttachmentParts::new(limits));
        let (read, files) = tokio::task::spawn_blocking(move || {
            all.add(&files, true);
            (all, files)
        })
        .await
        .inspect_err(|error| tracing::error!(%error, "reading attachments panicked"))
        .unwrap_or_else(|_| (AttachmentParts::new(limits), Vec::new()));
        self.files = read;
        let notices = std::mem::take(&mut self.files.notices);
        // The tools of a turn do not change: the run that is queued instead has the tool to read them with.
        if self.files.hides_any(&files) && !self.tool_set.is_host_tool(READ_ATTACHMENT) {
            self.port.decline(message);
            return None;
        }
        notices.into_iter().for_each(|notice| self.port.send(notice));
        self.host_calls.attach(&files);
        let mut parts = self.files.of(&files);
        parts.push(text.into());
        Some(LoopInput::Steer { message, parts })
    }

    /// Replaces the API's tool name by the tool's own name.
    fn named(&self, input: LoopInput) -> LoopInput {
        match input {
            LoopInput::Piece(AnswerPiece::CallStart { block, id, name }) => {
                LoopInput::Piece(AnswerPiece::CallStart { block, id, name: self.template.names.tool_name(&name) })
            }
            other => other,
        }
    }

    fn apply(&mut self, effect: LoopEffect) -> Option<TurnEnd> {
        match effect {
            LoopEffect::Emit(event) => {
                let raw = self.raw.take();
                self.port.send(ProviderEvent { event, raw });
            }
            LoopEffect::CallModel(purpose) => {
                let client = self.shared.client.clone();
                let (model, body) = (self.template.model.clone(), self.request(purpose));
                self.connection = ModelConnection::Calling(Box::pin(ask(client, model, body, self.port.keeps_raw())));
            }
            LoopEffect::CloseConnection => self.connection = ModelConnection::Idle,
            LoopEffect::WaitToRetry { attempt, failure } => {
                let wait = retry::delay(attempt, failure.retry_after, jitter());
                let message = format!(
                    "{}; retrying in {:.1} s (attempt {attempt} of {}).",
                    failure.message,
                    wait.as_secs_f64(),
                    self.shared.config.retries
                );
                self.port.send(TurnEvent::Status { status: "retrying".into(), message });
                self.connection = ModelConnection::WaitingToRetry(Instant::now() + wait);
            }
            LoopEffect::RequestApproval { call, name, input } => {
                let id = ApprovalId::generate();
                self.approvals.insert(id, call.clone());
                self.port.send(TurnEvent::Approval { id, tool_use_id: Some(call), name, input, is_question: false });
            }
            LoopEffect::RunTool { call, name, input } if self.tool_set.is_host_tool(&name) => {
                let origin = CallOrigin { tool_use_id: Some(call.clone()), raw: None };
                self.host_calls.start(call, origin, name, input);
            }
            LoopEffect::RunTool { call, name, input } => {
                let run =
                    self.tool_set.run(call.clone(), &name, input, self.cancel.child_token(), self.reports.clone());
                let task = self.tools.spawn(run);
                self.running.insert(task.id(), call);
            }
            LoopEffect::End(end) => return Some(end),
        }
        None
    }

    fn request(&self, purpose: ModelCallPurpose) -> Value {
        let RequestTemplate { model, system, offers, names, options } = &self.template;
        let is_xml = options.tool_calling == ToolCalling::Xml;
        let flat;
        let messages = if is_xml {
            flat = xml::with_calls_as_text(self.tool_loop.messages());
            &flat
        } else {
            self.tool_loop.messages()
        };
        let is_answer = purpose == ModelCallPurpose::Answer;
        let mut stop: Vec<&str> = options.stop.iter().map(String::as_str).filter(|_| is_answer).collect();
        if is_xml && is_answer && !self.tool_set.offered.is_empty() {
            stop.extend(xml::STOP_SEQUENCES);
        }
        let request = ModelRequest {
            model,
            system: if is_answer { system } else { "" },
            messages,
            tools: if is_answer { offers } else { &[] },
            names,
            max_output_tokens: options.max_output_tokens,
            temperature: options.temperature.filter(|_| is_answer),
            top_p: options.top_p.filter(|_| is_answer),
            thinking: options.thinking.filter(|_| is_answer),
            thinking_budget_tokens: options.thinking_budget_tokens.filter(|_| is_answer),
            stop: &stop,
            is_openai_service: self.shared.config.is_openai_service(),
        };
        wire::body(self.shared.config.api, &request)
    }
}

/// A function of its own, so that the future owns its data.
async fn ask(client: ModelClient, model: String, body: Value, keeps_raw: bool) -> Result<AnswerStream, ModelFailure> {
    client.start_answer(&model, body, keeps_raw).await
}

/// From 0 to 1; good enough to spread retries.
fn jitter() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    {
        bits as f64 / (1_u64 << 53) as f64
    }
}
