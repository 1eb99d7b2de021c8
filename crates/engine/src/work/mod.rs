//! The worker: claims runs from the queue, keeps their leases, and brings to an end what a dead worker left.
//!
//! One task looks after all runs of this server, so claiming, renewing and noticing an end cannot race. Start-up,
//! a crash elsewhere and a run that lost its driver are one path: `recovery`.

mod handoff;
mod recovery;

pub(crate) use handoff::{Handoff, Seated};

use crate::{
    Engine,
    run::{Brief, Halt, drive},
};
use domain::{event::Interruption, ids::RunId};
use handoff::{Handed, Intake};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use store::{journal::Stop, queue::Claim, queue::Dead};
use tokio::{
    sync::OwnedSemaphorePermit,
    task::{self, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// The bell may be missed by another server; nothing waits longer than this.
const LOOK_AGAIN: Duration = Duration::from_millis(1000);
/// How long runs may take to stop when the server does: a little longer than a provider's grace.
const STOP_ALL: Duration = Duration::from_secs(12);
const FORGET_KEYS: Duration = Duration::from_secs(3600);

pub struct Worker {
    engine: Engine,
    /// This worker's name on its leases; new with every start.
    holder: String,
    intake: Intake,
    /// A run was asked to stop that was on its way here, and so found nobody to tell.
    unheard: bool,
    tasks: JoinSet<()>,
    /// Which run each of them drives.
    runs: HashMap<task::Id, RunId>,
}

impl Worker {
    pub fn new(engine: Engine) -> Self {
        let holder = RunId::generate().to_string();
        let intake = engine.handoff().open(&holder, engine.config().concurrency, engine.config().lease);
        Self { engine, holder, intake, unheard: false, tasks: JoinSet::new(), runs: HashMap::new() }
    }

    /// Ends what an earlier server left unfinished. Returns when none of it is running any more.
    pub async fn recover_at_start(&self) -> Result<(), store::Error> {
        self.engine.clear_old_skills().await;
        let dead = if self.engine.store().is_sole_user() { Dead::AllOthers } else { Dead::Expired };
        self.recover(dead).await
    }

    pub async fn run(mut self, cancel: CancellationToken) {
        let bell = self.engine.store().queue_bell().clone();
        let mut look_again = interval(LOOK_AGAIN);
        let mut renew = interval(self.engine.config().lease / 3);
        let mut forget = interval(FORGET_KEYS);
        for timer in [&mut look_again, &mut renew, &mut forget] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        // Whoever is told to stop begins nothing more, whatever else is ready.
        while !cancel.is_cancelled() {
            let done = tokio::select! {
                () = cancel.cancelled() => break,
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.joined(ended);
                    self.work().await
                }
                Some(handed) = self.intake.handed.recv() => self.take(handed).await,
                () = bell.notified() => self.work().await,
                _ = look_again.tick() => self.work().await,
                _ = renew.tick() => self.renew().await,
                _ = forget.tick() => self.engine.store().forget_old_keys().await,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "the worker could not reach the store; trying again");
            }
        }
        self.stop().await;
    }

    async fn work(&mut self) -> Result<(), store::Error> {
        self.engine.end_stopped_in_queue().await?;
        if self.engine.store().has_waiting_runs().await? {
            let mut free = Vec::new();
            while let Ok(slot) = Arc::clone(&self.intake.slots).try_acquire_owned() {
                free.push(slot);
            }
            let claims = self.engine.store().claim(&self.holder, free.len(), self.engine.config().lease).await?;
            for (claim, slot) in claims.into_iter().zip(free) {
                self.start(claim, None, slot);
            }
        }
        self.hear_of_stops().await
    }

    async fn take(&mut self, handed: Handed) -> Result<(), store::Error> {
        let Handed { claim, brief, permit, mark } = handed;
        self.start(claim, Some(brief), permit);
        drop(mark);
        if std::mem::take(&mut self.unheard) { self.hear_of_stops().await } else { Ok(()) }
    }

    async fn hear_of_stops(&mut self) -> Result<(), store::Error> {
        let asked = self.engine.store().asked_to_stop(&self.holder).await?;
        self.pass_on_stops(&asked);
        Ok(())
    }

    fn pass_on_stops(&mut self, claims: &[Claim]) {
        for claim in claims {
            let halt = match claim.stop {
                Some(Stop::Cancel) => Halt::Cancel,
                Some(Stop::Interrupt) => Halt::Interrupt(Interruption::NewMessage),
                None => continue,
            };
            self.unheard |= !self.engine.active().halt(claim.run_id, halt) && self.intake.is_coming(claim.run_id);
        }
    }

    fn start(&mut self, claim: Claim, brief: Option<Brief>, slot: OwnedSemaphorePermit) {
        let run_id = claim.run_id;
        let signals = self.engine.active().add(&claim);
        let run = drive(self.engine.clone(), claim, brief, signals);
        let task = self.tasks.spawn(async move {
            run.await;
            drop(slot);
        });
        self.runs.insert(task.id(), run_id);
    }

    fn joined(&mut self, ended: Result<(task::Id, ()), task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a run's driver crashed; the next renewal ends the run");
                error.id()
            }
        };
        if let Some(run) = self.runs.remove(&id) {
            self.engine.active().remove(run);
        }
    }

    /// Keeps the leases, hears of stops asked for elsewhere, and notices runs that lost their driver.
    async fn renew(&mut self) -> Result<(), store::Error> {
        let driven: HashSet<RunId> = self.engine.active().ids().into_iter().collect();
        let held = self.engine.store().renew(&self.holder, self.engine.config().lease).await?;
        self.pass_on_stops(&held);
        let ours: HashSet<RunId> = held.iter().map(|claim| claim.run_id).collect();
        for lost in driven.difference(&ours) {
            // It has either just ended, which removes it from the board anyway, or was taken over.
            self.engine.active().halt(*lost, Halt::LeaseLost);
        }
        let is_lost = |claim: &&Claim| !driven.contains(&claim.run_id) && !self.intake.is_coming(claim.run_id);
        for claim in held.iter().filter(is_lost) {
            self.engine.recover_run(claim).await?;
        }
        self.recover(Dead::Expired).await
    }

    async fn recover(&self, dead: Dead) -> Result<(), store::Error> {
        let store = self.engine.store();
        for claim in store.take_over(&self.holder, dead, self.engine.config().lease).await? {
            self.engine.recover_run(&claim).await?;
        }
        self.engine.end_stopped_in_queue().await
    }

    /// Interrupts what runs, so that its text is kept; what waits stays queued for the next start.
    async fn stop(mut self) {
        self.engine.active().halt_all(Halt::Interrupt(Interruption::Shutdown));
        self.intake.handed.close();
        let all = async {
            while let Some(handed) = self.intake.handed.recv().await {
                self.engine.give_up(&handed.claim).await;
            }
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.joined(ended);
            }
        };
        if tokio::time::timeout(STOP_ALL, all).await.is_err() {
            tracing::warn!("some runs did not stop in time; the next start ends them");
        }
    }
}
