//! One turn, from the place on an instance to the proof that nothing of it runs any more.

use super::{
    hear::Asked,
    home,
    instance::Instance,
    open::{self, Opened},
    parse::{End, Parser, text},
    pool::{Lease, Pool},
    room::Room,
    settings,
};
use crate::{
    Kept, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    jsonrpc::{CallError, Incoming},
};
use domain::{
    ids::{ApprovalId, MessageId},
    run::{Receipt, RunError},
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// Codex names the turn before it begins.
const START: Duration = Duration::from_secs(30);
/// An earlier turn that nobody waits for any more is being ended.
const EARLIER: Duration = Duration::from_secs(10);
const PARK: Duration = Duration::from_secs(5);

pub async fn drive(pool: Pool, request: TurnRequest, channel: TurnChannel, given_up: CancellationToken) -> TurnOutcome {
    let mut room = Room::new(channel, given_up);
    let outcome = run(&pool, request, &mut room).await;
    room.finish().await;
    outcome
}

async fn run(pool: &Pool, request: TurnRequest, room: &mut Room) -> TurnOutcome {
    if let Err(error) = home::bring_skills(&request.place).await {
        let message = format!("The agent's skills could not be copied to its workplace: {error}");
        room.say(TurnEvent::Status { status: "skills_missing".into(), message });
    }
    let Some(lease) = find_place(pool, &request, room).await else { return TurnOutcome::of(TurnEnd::Stopped) };
    let instance = match room.unless_stopped(lease.instance()).await {
        Some(Ok(instance)) => instance,
        Some(Err(error)) => return TurnOutcome::of(TurnEnd::Failed(error)),
        None => return TurnOutcome::of(TurnEnd::Stopped),
    };
    if instance.is_new() && home::breaks_the_sandbox(&request.place.home) {
        let message = "The agent's folder lies among the system's temporary files, where Codex's sandbox does not work: \
                       commands will fail. Keep Greenroom's data elsewhere.";
        room.say(TurnEvent::Status { status: "sandbox_unavailable".into(), message: message.into() });
    }
    if let Some(thread) = thread_of(&request) {
        let vacant = tokio::time::timeout(EARLIER, instance.desk.vacant(thread));
        match room.unless_stopped(vacant).await {
            Some(Ok(())) => {}
            Some(Err(_)) => return busy(),
            None => return TurnOutcome::of(TurnEnd::Stopped),
        }
    }
    let outcome = loop {
        let opened = match room.unless_stopped(open::open(Arc::clone(&instance), request.clone())).await {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => return failed(&instance, error).await,
            None => return TurnOutcome::of(TurnEnd::Stopped),
        };
        let was_open = instance.desk.thread(&opened.thread).is_some_and(|thread| !thread.parked);
        let Some(turn) = Turn::new(room, Arc::clone(&instance), &opened) else { return busy() };
        turn.room.say(TurnEvent::Session { id: settings::session(&opened.thread, &request.place) });
        if let Some(why) = opened.rebuilt {
            turn.room.say(TurnEvent::Status { status: "session_rebuilt".into(), message: why.into() });
        }
        let outcome = turn.run(settings::turn(&request.place, &opened.thread, &opened.prompt)).await;
        // Codex may have closed a thread that we took for open; then it has to be resumed.
        if was_open && matches!(&outcome.end, TurnEnd::Failed(error) if error.message.contains("thread not found")) {
            instance.desk.forget(&opened.thread);
            continue;
        }
        break outcome;
    };
    for thread in instance.desk.park() {
        let peer = instance.peer.clone();
        pool.tasks().spawn(async move {
            // Codex closes it in its own time, and says so; if this is lost, it stays open a little longer.
            let parked = peer.request("thread/unsubscribe", json!({"threadId": thread}), PARK).await;
            tracing::debug!(thread, ?parked, "a thread of Codex was parked");
        });
    }
    if matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "authentication_failed") {
        // Somebody will log in; the program that runs may not notice.
        lease.discard().await;
    }
    outcome
}

/// A call that failed because the program is gone tells less than how it went.
async fn failed(instance: &Instance, error: RunError) -> TurnOutcome {
    if instance.peer.closed().is_none() {
        return TurnOutcome::of(TurnEnd::Failed(error));
    }
    let lost = instance.lost().await;
    TurnOutcome { end: TurnEnd::Failed(lost.error.clone()), receipt: lost.receipt.clone(), kept: Kept::Nothing }
}

/// A second turn on a thread would not wait its turn: Codex takes it as words spoken into the first.
fn busy() -> TurnOutcome {
    let message = "This conversation has a turn of Codex running. Ask again when that has ended.";
    TurnOutcome::of(TurnEnd::Failed(RunError::new("session_busy", message)))
}

/// The thread that can be gone on with.
fn thread_of(request: &TurnRequest) -> Option<&str> {
    let (thread, is_same) = settings::thread_of(&request.session.as_ref()?.id, &request.place);
    is_same.then_some(thread)
}

async fn find_place(pool: &Pool, request: &TurnRequest, room: &mut Room) -> Option<Lease> {
    let thread = thread_of(request);
    let ticket = pool.ticket();
    let mut has_told = false;
    loop {
        let mut changed = std::pin::pin!(pool.changed());
        changed.as_mut().enable();
        if let Some(lease) = pool.take(&ticket, &request.place.home, thread) {
            return Some(lease);
        }
        if !std::mem::replace(&mut has_told, true) {
            let message = "Every Codex that may run is busy; this turn waits for its place.";
            room.say(TurnEvent::Waiting { status: "waiting_for_slot".into(), message: message.into() });
        }
        room.unless_stopped(changed).await?;
    }
}

/// A turn on its thread. What it hears is in `hear`, how it is ended by force in `stop`.
pub struct Turn<'a> {
    pub room: &'a mut Room,
    pub instance: Arc<Instance>,
    pub thread: String,
    pub parser: Parser,
    pub end: Option<End>,
    /// When it was told to stop.
    pub stop: Option<Instant>,
    /// It goes on, but nothing will come of it.
    pub hopeless: Option<RunError>,
    pub is_lost: bool,
    /// How many processes had to be killed when it was over.
    pub killed: u32,
    pub heard: mpsc::Receiver<Incoming>,
    pub asks: HashMap<ApprovalId, Asked>,
    /// Who spoke into the answer and waits to hear whether it was taken.
    pub steering: JoinSet<(MessageId, bool)>,
    model: Option<String>,
}

impl<'a> Turn<'a> {
    /// `None` if another turn is on that thread.
    fn new(room: &'a mut Room, instance: Arc<Instance>, opened: &Opened) -> Option<Self> {
        Some(Self {
            room,
            heard: instance.desk.sit(&opened.thread)?,
            instance,
            thread: opened.thread.clone(),
            parser: Parser::new(opened.model.clone(), opened.total),
            end: None,
            stop: None,
            hopeless: None,
            is_lost: false,
            killed: 0,
            asks: HashMap::new(),
            steering: JoinSet::new(),
            model: opened.model.clone(),
        })
    }

    async fn run(mut self, params: Value) -> TurnOutcome {
        let outcome = match self.start(params).await {
            Ok(()) => self.until_the_end().await,
            Err(error) => TurnOutcome::of(TurnEnd::Failed(error)),
        };
        self.settle_steering().await;
        if !self.is_lost {
            self.instance.desk.leave(&self.thread, self.model.take(), self.parser.total());
        }
        if self.parser.skipped() > 0 {
            tracing::debug!(skipped = self.parser.skipped(), "Codex said things this does not know");
        }
        outcome
    }

    async fn start(&mut self, params: Value) -> Result<(), RunError> {
        let peer = self.instance.peer.clone();
        let call = async move { peer.request("turn/start", params, START).await };
        match self.during(call, None).await {
            Some(Ok(started)) => {
                if let Some(id) = started.get("turn").and_then(|turn| text(turn, "id")) {
                    self.parser.turn_is(id);
                }
                Ok(())
            }
            // It may have begun all the same: that it is told to stop is seen to below.
            None | Some(Err(CallError::Timeout)) if self.stop.is_some() => Ok(()),
            // Then it is interrupted like any other, or its instance is ended.
            Some(Err(error @ CallError::Timeout)) => {
                self.hopeless = Some(open::failed("begin its turn", &error));
                Ok(())
            }
            Some(Err(CallError::Closed(_))) => {
                self.is_lost = true;
                Ok(())
            }
            Some(Err(error)) => Err(open::failed("begin its turn", &error)),
            None => Err(open::failed("begin its turn", &CallError::Timeout)),
        }
    }

    async fn until_the_end(&mut self) -> TurnOutcome {
        while self.end.is_none() && self.stop.is_none() && self.hopeless.is_none() && !self.is_lost {
            self.step().await;
        }
        let stopping = self.stop.unwrap_or_else(Instant::now);
        let killed = self.put_to_rest(stopping).await;
        let mut receipt = match (&killed, self.stop) {
            (Some(lost), _) => {
                let signals = std::iter::once("interrupt".to_owned()).chain(lost.receipt.signals.iter().cloned());
                Receipt { signals: signals.collect(), millis: millis(stopping), ..lost.receipt }
            }
            (None, Some(_)) => Receipt { processes: 0, signals: vec!["interrupt".into()], millis: millis(stopping) },
            (None, None) => Receipt::default(),
        };
        if self.killed > 0 {
            receipt.processes = receipt.processes.saturating_add(self.killed);
            receipt.signals.push("SIGKILL".into());
        }
        let kept = match &self.end {
            Some(End::Completed) => Kept::PromptAndAnswer,
            Some(End::Interrupted | End::Failed(_)) => Kept::Prompt,
            None => Kept::Nothing,
        };
        if self.stop.is_some() {
            return TurnOutcome { end: TurnEnd::Stopped, receipt, kept };
        }
        if let Some(error) = self.hopeless.take() {
            return TurnOutcome { end: TurnEnd::Failed(error), receipt, kept };
        }
        match self.end.take() {
            Some(End::Completed) => TurnOutcome { end: TurnEnd::Completed, receipt, kept },
            Some(End::Failed(error)) => TurnOutcome { end: TurnEnd::Failed(error), receipt, kept },
            // Not by us, so by somebody else who has hold of the thread.
            Some(End::Interrupted) => {
                let error =
                    RunError::new("interrupted", "Codex broke off its turn, and not because it was told to here.");
                TurnOutcome { end: TurnEnd::Failed(error), receipt, kept }
            }
            None => {
                let lost = self.instance.lost().await;
                TurnOutcome { end: TurnEnd::Failed(lost.error.clone()), receipt: lost.receipt.clone(), kept }
            }
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
