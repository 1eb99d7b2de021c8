//! One turn: carries out what the machine says, and tells it what happens.

use super::{
    Shared,
    client::{Answering, Client},
    machine::{Effect, Input, Machine, Purpose, Setting},
    prompt, retry,
    tools::{Done, Kit, Report, Skill, read_all},
    wire::{self, Offer, Piece, Question, failure::Failure, names::Names},
    xml,
};
use crate::{
    Kept, TurnChannel, TurnCommand, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    acp::talk::{Heard, Talk},
};
use domain::{
    agent::{ModelOptions, RunTools, ToolCalling},
    ids::ApprovalId,
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

/// How long tools may take to end when the turn is stopped.
const TOOLS_STOP: Duration = Duration::from_secs(5);
/// What tools report while they work; more waits.
const OUTPUT: usize = 64;

pub async fn turn(shared: Arc<Shared>, request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let mut talk = Talk::new(channel);
    let made = tokio::select! {
        made = prepare(&shared, &request) => made,
        () = talk.stopped() => Err(TurnEnd::Stopped),
    };
    let outcome = match made {
        Ok(Prepared { notices, kit, machine, asking }) => {
            notices.into_iter().for_each(|notice| talk.tell(notice));
            let stage = Stage::new(&shared, &mut talk, kit, machine, asking);
            stage.play().await
        }
        Err(end) => TurnOutcome::of(end),
    };
    talk.finish().await;
    outcome
}

/// What stays the same in every question of a turn.
struct Asking {
    model: String,
    system: String,
    offers: Vec<Offer>,
    names: Names,
    options: ModelOptions,
}

struct Prepared {
    notices: Vec<TurnEvent>,
    kit: Kit,
    machine: Machine,
    asking: Asking,
}

async fn prepare(shared: &Shared, request: &TurnRequest) -> Result<Prepared, TurnEnd> {
    let spec = &request.agent().spec;
    let options = spec.model_options.clone().unwrap_or_default();
    let Some(model) = spec.model.clone().or_else(|| shared.config.default_model.clone()) else {
        let message =
            format!("name a model in the agent's settings: {} has none that is always there", shared.config.name);
        return Err(TurnEnd::Failed(RunError::new("no_model", message)));
    };
    if let Some(advice) = shared.config.missing_key() {
        return Err(TurnEnd::Failed(RunError::new("authentication_failed", advice)));
    }
    let history = request.history.read().await.map_err(TurnEnd::Failed)?;
    let (skills, mut notices) = skills(request).await;
    let place = &request.place;
    let (kit, problems) = Kit::gather(&place.mcp_servers, &shared.toolbox, &skills, &request.memory, &spec.tools).await;
    notices.extend(problems);

    let is_xml = options.tool_calling == ToolCalling::Xml;
    let instructions = if is_xml { xml::instructions(&kit.offers) } else { String::new() };
    let has_skill_tool = kit.tools.contains_key("skill");
    let system = prompt::system(spec.system_prompt.as_deref(), &skills, has_skill_tool, &instructions);
    let mut texts = vec![request.prompt.clone()];
    if let Some(skill) = prompt::invoked(&request.prompt, &skills) {
        texts.insert(0, format!("<skill name=\"{}\">\n{}\n</skill>", skill.name, skill.body.trim()));
    }
    let setting = Setting {
        tools: kit.tools.clone(),
        is_xml,
        runs_while_streaming: options.run_tools == RunTools::WhileStreaming,
        is_parallel: options.parallel,
        context_window: options.context_window.unwrap_or(shared.config.context_window).into(),
        answer_tokens: options.max_output_tokens.unwrap_or(shared.config.answer_tokens).into(),
        fixed_bytes: system.len() + if is_xml { 0 } else { kit.bytes() },
        retries: shared.config.retries,
        key_advice: shared.config.key_advice(),
    };
    let machine = Machine::new(setting, prompt::conversation(&history, texts));
    let names = Names::new(kit.offers.iter().map(|offer| offer.name.as_str()));
    let offers = if is_xml { Vec::new() } else { kit.offers.clone() };
    Ok(Prepared { notices, kit, machine, asking: Asking { model, system, offers, names, options } })
}

async fn skills(request: &TurnRequest) -> (Arc<Vec<Skill>>, Vec<TurnEvent>) {
    let folders = request.place.skills.clone();
    if folders.is_empty() {
        return (Arc::default(), Vec::new());
    }
    let (skills, problems) = match tokio::task::spawn_blocking(move || read_all(&folders)).await {
        Ok(read) => read,
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    let notice = |message| TurnEvent::Status { status: "skill_unreadable".into(), message };
    (Arc::new(skills), problems.into_iter().map(notice).collect())
}

/// The line to the model.
enum Line {
    Idle,
    Calling(Pin<Box<dyn Future<Output = Result<Answering, Failure>> + Send>>),
    Open(Answering),
    Resting(Instant),
}

impl Line {
    /// What comes next. Cancel safe.
    async fn next(&mut self) -> Vec<Input> {
        match self {
            Self::Idle => pending().await,
            Self::Calling(call) => {
                let answered = call.await;
                match answered {
                    Ok(answering) => {
                        *self = Self::Open(answering);
                        Vec::new()
                    }
                    Err(failure) => {
                        *self = Self::Idle;
                        vec![Input::Ended(Err(failure))]
                    }
                }
            }
            Self::Open(answering) => {
                let (pieces, end) = answering.next().await;
                if end.is_some() {
                    *self = Self::Idle;
                }
                pieces.into_iter().map(Input::Piece).chain(end.map(Input::Ended)).collect()
            }
            Self::Resting(until) => {
                sleep_until(*until).await;
                *self = Self::Idle;
                vec![Input::Rested]
            }
        }
    }
}

struct Stage<'a> {
    shared: &'a Shared,
    talk: &'a mut Talk,
    kit: Kit,
    machine: Machine,
    asking: Asking,
    line: Line,
    tools: JoinSet<Done>,
    running: BTreeMap<tokio::task::Id, String>,
    cancel: CancellationToken,
    reports: mpsc::Sender<Report>,
    reported: mpsc::Receiver<Report>,
    approvals: BTreeMap<ApprovalId, String>,
    stopped: Option<Instant>,
}

/// Something that happened.
enum Happened {
    Inputs(Vec<Input>),
    Heard(Heard),
    Ended(Result<(tokio::task::Id, Done), JoinError>),
    Reported(Report),
}

impl<'a> Stage<'a> {
    fn new(shared: &'a Shared, talk: &'a mut Talk, kit: Kit, machine: Machine, asking: Asking) -> Self {
        let (reports, reported) = mpsc::channel(OUTPUT);
        Self {
            shared,
            talk,
            kit,
            machine,
            asking,
            line: Line::Idle,
            tools: JoinSet::new(),
            running: BTreeMap::new(),
            cancel: CancellationToken::new(),
            reports,
            reported,
            approvals: BTreeMap::new(),
            stopped: None,
        }
    }

    async fn play(mut self) -> TurnOutcome {
        let mut inputs = vec![Input::Begin];
        let end = 'turn: loop {
            let mut effects = Vec::new();
            for input in inputs.drain(..) {
                self.machine.on(input, &mut effects);
            }
            for effect in effects {
                if let Some(end) = self.carry_out(effect) {
                    break 'turn end;
                }
            }
            let happened = tokio::select! {
                heard = self.talk.next() => Happened::Heard(heard),
                more = self.line.next(), if self.talk.has_room() => Happened::Inputs(more),
                Some(ended) = self.tools.join_next_with_id() => Happened::Ended(ended),
                Some(report) = self.reported.recv(), if self.talk.has_room() => Happened::Reported(report),
            };
            inputs = self.happened(happened);
        };
        // Whatever still works is told to stop, and the turn ends when it has.
        self.line = Line::Idle;
        self.cancel.cancel();
        let ending = async {
            while let Some(ended) = self.tools.join_next().await {
                if let Ok(Done { call, outcome, .. }) = ended {
                    let content = outcome.shown;
                    self.talk.tell(TurnEvent::ToolResult { id: call, content, is_error: outcome.is_error });
                }
            }
        };
        if timeout(TOOLS_STOP, ending).await.is_err() {
            self.tools.shutdown().await;
        }
        let millis = self.stopped.map_or(0, |since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        TurnOutcome { end, receipt: Receipt { millis, ..Receipt::default() }, kept: Kept::Nothing }
    }

    fn happened(&mut self, happened: Happened) -> Vec<Input> {
        match happened {
            Happened::Inputs(inputs) => inputs.into_iter().map(|input| self.named(input)).collect(),
            Happened::Heard(Heard::Room) => Vec::new(),
            Happened::Heard(Heard::Gone | Heard::Command(TurnCommand::Interrupt)) => {
                self.stopped = Some(Instant::now());
                vec![Input::Stop]
            }
            Happened::Heard(Heard::Command(TurnCommand::Answer { approval, decision, input })) => {
                let decided = |call| Input::Decided { call, decision, input };
                self.approvals.remove(&approval).map(decided).into_iter().collect()
            }
            Happened::Heard(Heard::Command(TurnCommand::Steer { message, text })) => {
                vec![Input::Steer { message, text }]
            }
            Happened::Ended(Ok((task, Done { call, outcome, notices }))) => {
                self.running.remove(&task);
                notices.into_iter().for_each(|notice| self.talk.tell(notice));
                vec![Input::ToolEnded { call, outcome }]
            }
            Happened::Ended(Err(error)) => {
                tracing::error!(%error, "a tool crashed");
                let outcome = super::machine::Outcome::text("The tool crashed; what it did is not known.", true);
                self.running.remove(&error.id()).map(|call| Input::ToolEnded { call, outcome }).into_iter().collect()
            }
            Happened::Reported((id, delta)) => {
                self.talk.tell(TurnEvent::ToolOutput { id, delta });
                Vec::new()
            }
        }
    }

    /// Tools by their own names, not by those that were made fit for the API.
    fn named(&self, input: Input) -> Input {
        match input {
            Input::Piece(Piece::CallBegins { block, id, name }) => {
                Input::Piece(Piece::CallBegins { block, id, name: self.asking.names.meant(&name) })
            }
            other => other,
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<TurnEnd> {
        match effect {
            Effect::Tell(event) => self.talk.tell(event),
            Effect::Ask(purpose) => {
                let client = self.shared.client.clone();
                let body = self.question(purpose);
                self.line = Line::Calling(Box::pin(ask(client, body)));
            }
            Effect::HangUp => self.line = Line::Idle,
            Effect::Rest { attempt, failure } => {
                let wait = retry::delay(attempt, failure.retry_after, chance());
                let message = format!(
                    "{}; asking again in {:.1} s (attempt {attempt} of {}).",
                    failure.message,
                    wait.as_secs_f64(),
                    self.shared.config.retries
                );
                self.talk.tell(TurnEvent::Status { status: "retrying".into(), message });
                self.line = Line::Resting(Instant::now() + wait);
            }
            Effect::Decide { call, name, input, is_question } => {
                let id = ApprovalId::generate();
                self.approvals.insert(id, call.clone());
                self.talk.tell(TurnEvent::Approval { id, tool_use_id: Some(call), name, input, is_question });
            }
            Effect::Run { call, name, input } => {
                let run = self.kit.run(call.clone(), &name, input, self.cancel.child_token(), self.reports.clone());
                let task = self.tools.spawn(run);
                self.running.insert(task.id(), call);
            }
            Effect::End(end) => return Some(end),
        }
        None
    }

    fn question(&self, purpose: Purpose) -> Value {
        let Asking { model, system, offers, names, options } = &self.asking;
        let is_xml = options.tool_calling == ToolCalling::Xml;
        let flat;
        let messages = if is_xml {
            flat = xml::flattened(self.machine.messages());
            &flat
        } else {
            self.machine.messages()
        };
        let is_answer = purpose == Purpose::Answer;
        let question = Question {
            model,
            system: if is_answer { system } else { "" },
            messages,
            tools: if is_answer { offers } else { &[] },
            names,
            max_output_tokens: options.max_output_tokens,
            thinking: options.thinking.filter(|_| is_answer),
            thinking_budget_tokens: options.thinking_budget_tokens.filter(|_| is_answer),
            stop: if is_xml && is_answer && !self.kit.offers.is_empty() { xml::STOP } else { &[] },
            is_vendors_own: self.shared.config.is_vendors_own(),
        };
        wire::body(self.shared.config.api, &question)
    }
}

/// Its own function, so that the future owns what it needs.
async fn ask(client: Client, body: Value) -> Result<Answering, Failure> {
    client.ask(body).await
}

/// From 0 to 1; good enough to keep many from coming back at once.
fn chance() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    {
        bits as f64 / (1_u64 << 53) as f64
    }
}
