//! The worker: claims runs from the queue, renews their leases, and ends the runs that a dead worker left.
//!
//! One task manages all runs of this server, so claiming, renewing and the end of a run cannot race. Server start,
//! a crash elsewhere and a run without a driver share one path: `recovery`.

mod handoff;
mod recovery;
mod slots;

pub(crate) use handoff::Handoff;
pub(crate) use slots::TakenSlot;

use crate::{
    Engine,
    run::{RunStop, drive, drive_queued},
};
use domain::{event::Interruption, ids::RunId};
use handoff::WorkerInbox;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use store::{
    SETTLED_SIGNALS_PER_DELETE,
    journal::StopRequest,
    notify::SignaledRuns,
    queue::{Claim, DeadLeases},
};
use tokio::{
    task::{self, JoinSet},
    time::{Interval, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// A notification from another server may be missed; nothing waits longer than this.
const POLL_INTERVAL: Duration = Duration::from_millis(1000);
/// How often to look for signals whose notification was missed.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(250);
/// How long runs may take to stop on shutdown: a little longer than a provider's grace period.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
/// How often expired rows are deleted, and the pause if there are more than one transaction deletes.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);
const CLEANUP_PAUSE: Duration = Duration::from_secs(1);
/// How long settled signals are kept. Their senders wait for seconds.
const SIGNAL_LIFETIME: Duration = Duration::from_secs(24 * 3600);

pub struct Worker {
    engine: Engine,
    /// This worker's name on its leases, unique per server start.
    holder: String,
    inbox: WorkerInbox,
    tasks: JoinSet<()>,
    /// The run that each task drives.
    runs: HashMap<task::Id, RunId>,
}

impl Worker {
    pub fn new(engine: Engine) -> Self {
        let engine = engine.for_worker();
        let holder = RunId::generate().to_string();
        let inbox = engine.handoff().register_worker(&holder, engine.config());
        Self { engine, holder, inbox, tasks: JoinSet::new(), runs: HashMap::new() }
    }

    /// Ends the runs that an earlier server left unfinished. Returns when all of them have ended.
    pub async fn recover_at_start(&self) -> Result<(), store::StoreError> {
        self.engine.remove_stale_skills().await;
        let dead = if self.engine.store().is_only_server() {
            DeadLeases::ExpiredOrOfOtherHolders
        } else {
            DeadLeases::Expired
        };
        self.recover(dead).await
    }

    pub async fn run(mut self, cancel: CancellationToken) {
        let notify = self.engine.store().queue_notify().clone();
        let signal_watch = self.engine.store().watch_run_signals();
        let mut poll = interval(POLL_INTERVAL);
        let mut signals = interval(SIGNAL_INTERVAL);
        let mut renew = interval(self.engine.config().lease / 3);
        let mut cleanup = interval(CLEANUP_INTERVAL);
        for timer in [&mut poll, &mut signals, &mut renew, &mut cleanup] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        // After a cancellation nothing is started, whatever else is ready.
        while !cancel.is_cancelled() {
            let done = tokio::select! {
                () = cancel.cancelled() => break,
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.on_task_end(ended);
                    self.claim_runs().await
                }
                Some(run) = self.inbox.dispatches.recv() => {
                    self.spawn(run.claim.run_id, drive(self.engine.clone(), run));
                    Ok(())
                }
                () = notify.notified() => self.claim_runs().await,
                _ = poll.tick() => self.claim_runs().await,
                () = signal_watch.changed() => self.wake(signal_watch.take()).await,
                _ = signals.tick() => self.wake_signaled_runs().await,
                _ = renew.tick() => self.renew().await,
                _ = cleanup.tick() => self.clean_up(&mut cleanup).await,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "the worker could not reach the store; retrying");
            }
        }
        self.stop().await;
    }

    /// Deletes what has expired. Signals in small transactions, so that runs need not wait.
    async fn clean_up(&self, timer: &mut Interval) -> Result<(), store::StoreError> {
        let store = self.engine.store();
        if store.delete_settled_signals(SIGNAL_LIFETIME).await? >= SETTLED_SIGNALS_PER_DELETE {
            timer.reset_after(CLEANUP_PAUSE);
            return Ok(());
        }
        store.delete_expired_keys().await?;
        store.delete_expired_audit().await
    }

    /// Claims as many runs as there are free slots and starts them. Which run is next is decided by the query in
    /// `store::queue`: the lowest cell of each room, workspaces in turn.
    async fn claim_runs(&mut self) -> Result<(), store::StoreError> {
        self.engine.end_stopped_in_queue().await?;
        for depth in self.engine.store().waiting_depths().await? {
            let Some(slots) = self.inbox.slots.at(depth) else { continue };
            let mut free = slots.reserve_all();
            let lease = self.engine.config().lease;
            for claim in self.engine.store().claim_runs(&self.holder, free.limits(), lease).await? {
                // There are no more claims than slots.
                let Some(slot) = free.take(&claim.owner) else { break };
                let run_id = claim.run_id;
                let active = self.engine.active_runs().add(claim.room_id, run_id, Some(claim.queued_seq));
                self.spawn(run_id, drive_queued(self.engine.clone(), claim, slot, active));
            }
        }
        self.check_stops().await
    }

    async fn wake(&self, signaled: SignaledRuns) -> Result<(), store::StoreError> {
        signaled.runs.into_iter().for_each(|run| self.engine.active_runs().wake(run));
        if signaled.any { self.wake_signaled_runs().await } else { Ok(()) }
    }

    /// For signals whose notification was missed; a signal that was stored here has woken its run already.
    async fn wake_signaled_runs(&self) -> Result<(), store::StoreError> {
        if self.runs.is_empty() {
            return Ok(());
        }
        for run in self.engine.store().runs_with_signals(&self.holder).await? {
            self.engine.active_runs().wake(run);
        }
        Ok(())
    }

    async fn check_stops(&self) -> Result<(), store::StoreError> {
        let stopping = self.engine.store().stop_requests(&self.holder).await?;
        self.forward_stops(&stopping);
        Ok(())
    }

    fn forward_stops(&self, claims: &[Claim]) {
        for claim in claims {
            let stop = match claim.stop {
                Some(StopRequest::Cancel) => RunStop::Cancel,
                Some(StopRequest::Interrupt) => RunStop::Interrupt(Interruption::NewMessage),
                None => continue,
            };
            self.engine.active_runs().stop(claim.run_id, stop);
        }
    }

    fn spawn(&mut self, run_id: RunId, driver: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(driver);
        self.runs.insert(task.id(), run_id);
    }

    fn on_task_end(&mut self, ended: Result<(task::Id, ()), task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a run's driver panicked; the next renewal ends the run");
                error.id()
            }
        };
        self.runs.remove(&id);
    }

    /// Renews the leases, forwards stops requested on other servers, and ends runs that lost their driver.
    async fn renew(&self) -> Result<(), store::StoreError> {
        let driven: HashSet<RunId> = self.runs.values().copied().collect();
        let held = self.engine.store().renew_leases(&self.holder, self.engine.config().lease).await?;
        self.forward_stops(&held);
        let ours: HashSet<RunId> = held.iter().map(|claim| claim.run_id).collect();
        for lost in driven.difference(&ours) {
            // The run has just ended or was taken over.
            self.engine.active_runs().stop(*lost, RunStop::LeaseLost);
        }
        // A run that is active but not driven was claimed with its message and waits in the inbox.
        let is_lost =
            |claim: &&Claim| !driven.contains(&claim.run_id) && !self.engine.active_runs().contains(claim.run_id);
        for claim in held.iter().filter(is_lost) {
            self.engine.recover_run(claim).await?;
        }
        self.recover(DeadLeases::Expired).await
    }

    async fn recover(&self, dead: DeadLeases) -> Result<(), store::StoreError> {
        let store = self.engine.store();
        for claim in store.take_over(&self.holder, dead, self.engine.config().lease).await? {
            self.engine.recover_run(&claim).await?;
        }
        self.engine.end_stopped_in_queue().await
    }

    /// Interrupts running turns, so that their text is stored; queued runs stay for the next start.
    async fn stop(mut self) {
        self.engine.active_runs().stop_all(RunStop::Interrupt(Interruption::Shutdown));
        self.inbox.dispatches.close();
        let all = async {
            while let Some(run) = self.inbox.dispatches.recv().await {
                self.engine.end_for_shutdown(&run.claim).await;
            }
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.on_task_end(ended);
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT, all).await.is_err() {
            tracing::warn!("some runs did not stop in time; the next server start ends them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Worker;
    use crate::{
        Engine, EngineConfig, Folders, McpVariables,
        commands::{NewPost, NewRoom},
    };
    use domain::{actor::Actor, agent::AgentSpec, limits::Limits, name::Name, room::RoomPolicy, run::RunStatus};
    use providers::{ProviderRegistry, host_tools::HostTools};
    use std::{collections::BTreeMap, time::Duration};
    use testkit::database::TestDatabase;
    use workbench::{
        mcp::{McpClientSettings, McpManager},
        process::Supervisor,
    };

    fn engine(database: &TestDatabase, store: store::Store) -> Engine {
        let config = EngineConfig {
            concurrency: 1,
            concurrency_per_workspace: 1,
            unfinished_runs_per_workspace: 100,
            workspace_limits: crate::WorkspaceLimits { rooms: 100, stored_bytes: 1 << 30 },
            erase_after: Duration::from_secs(60),
            lease: Duration::from_secs(60),
            limits: Limits::default(),
            stop_grace: Duration::from_secs(1),
            folders: Folders { data: database.folder().join("data"), shared_workspace: None },
            mcp_servers: BTreeMap::new(),
            mcp_variables: McpVariables::default(),
            host_tools: HostTools::new(Vec::new()).unwrap(),
            projects: crate::ProjectServices::without_sandboxes(),
        };
        let mcp = McpManager::new(Supervisor::new("none".into()), McpClientSettings::new(database.folder().to_owned()));
        Engine::new(store, ProviderRegistry::new([]), mcp, config)
    }

    /// A renewal reads the leases at a moment when a run is held and not driven yet.
    #[tokio::test]
    async fn a_run_that_waits_for_the_worker_is_not_taken_for_a_lost_one() {
        let database = TestDatabase::sqlite();
        let store = database.open().await;
        let engine = engine(&database, store.clone());
        let (mut worker, me) = (Worker::new(engine.clone()), Actor::local());
        let spec = AgentSpec::new(Name::parse("Ann").unwrap(), "p");
        let agents = vec![store.create_agent(&me, spec, None).await.unwrap().id];
        let name = Name::parse("A room").unwrap();
        let room = NewRoom { name, agents, project_id: None, policy: RoomPolicy::default() };
        let room = engine.create_room(&me, room, None).await.unwrap().id;
        let run = engine.post_message(&me, room, NewPost::new("hello"), None).await.unwrap().runs[0].id;
        worker.renew().await.unwrap();
        assert_eq!(store.run(&me.workspace, run).await.unwrap().status, RunStatus::Running);
        // A run that nobody will drive is lost.
        drop(worker.inbox.dispatches.try_recv().unwrap());
        worker.renew().await.unwrap();
        assert_eq!(store.run(&me.workspace, run).await.unwrap().status, RunStatus::Interrupted);
    }
}
