//! `greenroom run`: asks an agent and prints its answer as it comes.
//!
//! The question is posted to a room (a new one, or `--room`) and the room's feed is followed from there. A run does not
//! need its reader: when the connection breaks, the feed resumes after the last event, and nothing is lost or doubled.

mod narrator;
mod question;

use super::{
    Connection, Exit, cancel,
    client::{
        Client, Error,
        feed::{Feed, Item},
        views::Cancelled,
    },
};
use crate::terminal::{sanitise, screen::Screen, spinner};
use anyhow::Context as _;
use clap::Args;
use domain::ids::{RoomId, RunId};
use narrator::Narrator;
use std::{
    future::Future,
    io::{self, Write},
    pin::{Pin, pin},
    sync::atomic::Ordering,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, timeout},
};

/// How long a server may be away in the middle of an answer. It is long enough for a restart.
const PATIENCE: Duration = Duration::from_secs(120);
/// After a run was stopped, its last events are only a matter of delivery.
const LAST_EVENTS: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub struct Arguments {
    /// The agent's name or id.
    agent: String,
    /// What to say; `-` reads it from standard input.
    message: String,
    /// Continue in this room instead of a new one.
    #[arg(long, value_name = "ID")]
    room: Option<RoomId>,
    /// Print the run's events as JSON, one per line, instead of its text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let text = question::text(&arguments.message)?;
    let client = Client::new(&arguments.connection)?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    let asked = {
        let mut asking = pin!(question::ask(&client, &arguments.agent, arguments.room, &text));
        tokio::select! {
            asked = &mut asking => asked?,
            Some(()) = interrupts.recv() => {
                // Whether the message arrived is not known, and only the server's answer says what there is to stop.
                writeln!(io::stderr(), "stopping as soon as the server has answered; again to stop waiting")?;
                let asked = tokio::select! {
                    asked = &mut asking => asked?,
                    Some(()) = interrupts.recv() => return Ok(Exit::Interrupted),
                };
                let runs = asked.runs.iter().map(|run| run.id).collect();
                for said in stop(client.clone(), runs).await? {
                    writeln!(io::stderr(), "{}", sanitise::line(&said.to_string(), 400))?;
                }
                return Ok(Exit::Interrupted);
            }
        }
    };
    let feed = Feed::after(client.clone(), asked.room, asked.seq.to_string(), asked.seq, PATIENCE);
    let narrator = Narrator::new(&asked, arguments.json);
    Watch { client, feed, narrator, interrupts, screen: Screen::standard(), stopping: None }.follow().await
}

type Stopping = Pin<Box<dyn Future<Output = Result<Vec<Cancelled>, Error>> + Send>>;

/// Someone watching an answer come.
struct Watch<Out, Side> {
    client: Client,
    feed: Feed,
    narrator: Narrator,
    interrupts: Signal,
    screen: Screen<Out, Side>,
    /// Under way since the first interrupt.
    stopping: Option<Stopping>,
}

impl<Out: Write, Side: Write> Watch<Out, Side> {
    async fn follow(mut self) -> anyhow::Result<Exit> {
        while !self.narrator.is_over() {
            match self.step().await? {
                Step::Item(Ok(Item::Event(event))) => self.narrator.tell(&event, &mut self.screen)?,
                Step::Item(Ok(Item::Reset)) => {
                    self.screen.note("the store was restored; looking for where the answer goes on")?;
                    check_that_runs_exist(&self.client, self.narrator.open()).await?;
                }
                Step::Item(Err(error)) => {
                    self.screen.finish()?;
                    let (room, position) = (self.narrator.room(), self.feed.position());
                    let go_on = format!("greenroom events {room} --after {position} --follow");
                    return Err(anyhow::Error::new(error).context(format!("see how the answer goes on with: {go_on}")));
                }
                Step::Interrupt if self.stopping.is_some() => {
                    self.screen.finish()?;
                    self.screen.announce("not waiting for the run to stop")?;
                    return Ok(Exit::Interrupted);
                }
                Step::Interrupt => {
                    self.screen.note("stopping; again to stop waiting")?;
                    self.stopping = Some(Box::pin(stop(self.client.clone(), self.narrator.open().to_vec())));
                }
                Step::Stopped(result) => {
                    let stopped = result.with_context(|| {
                        let open: Vec<String> = self.narrator.open().iter().map(ToString::to_string).collect();
                        format!("not stopped; try again with: greenroom cancel {}", open.join(" "))
                    })?;
                    self.drain().await?;
                    self.screen.finish()?;
                    stopped.iter().try_for_each(|said| self.screen.announce(&said.to_string()))?;
                    return Ok(Exit::Interrupted);
                }
            }
        }
        self.screen.finish()?;
        // The end can be in the feed before the answer to our request to stop; that answer says what was stopped.
        if let Some(stopping) = self.stopping {
            let stopped = timeout(LAST_EVENTS, stopping).await.unwrap_or_else(|_| Ok(Vec::new()))?;
            stopped.iter().try_for_each(|said| self.screen.announce(&said.to_string()))?;
            return Ok(Exit::Interrupted);
        }
        Ok(self.narrator.exit())
    }

    /// Waits for whatever comes first.
    async fn step(&mut self) -> anyhow::Result<Step> {
        let broken = self.feed.broken();
        let mut ticks = interval(spinner::TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.reset();
        // Kept over the ticks of the spinner, so that they do not start its waits and its reconnections anew.
        let mut next = pin!(self.feed.next());
        loop {
            tokio::select! {
                item = &mut next => return Ok(Step::Item(item)),
                Some(()) = self.interrupts.recv() => return Ok(Step::Interrupt),
                stopped = settled(&mut self.stopping) => {
                    self.stopping = None;
                    return Ok(Step::Stopped(stopped));
                }
                _ = ticks.tick(), if self.screen.spins() => {
                    let label = match () {
                        () if self.stopping.is_some() => "stopping",
                        () if broken.load(Ordering::Relaxed) => "connection lost, waiting for the server",
                        () => self.narrator.waiting_for(),
                    };
                    self.screen.tick(label)?;
                }
            }
        }
    }

    /// Prints what was said until the end that is already known to have come.
    async fn drain(&mut self) -> anyhow::Result<()> {
        let rest = async {
            while !self.narrator.is_over() {
                if let Item::Event(event) = self.feed.next().await? {
                    self.narrator.tell(&event, &mut self.screen)?;
                }
            }
            Ok(())
        };
        timeout(LAST_EVENTS, rest).await.unwrap_or(Ok(()))
    }
}

enum Step {
    Item(Result<Item, Error>),
    Interrupt,
    Stopped(Result<Vec<Cancelled>, Error>),
}

async fn settled(stopping: &mut Option<Stopping>) -> Result<Vec<Cancelled>, Error> {
    match stopping {
        Some(stopping) => stopping.await,
        None => std::future::pending().await,
    }
}

/// Stops the runs, the last one first: otherwise the end of one would start the next.
async fn stop(client: Client, runs: Vec<RunId>) -> Result<Vec<Cancelled>, Error> {
    let mut stopped = Vec::new();
    for run in runs.into_iter().rev() {
        match cancel::stop(&client, run).await {
            Ok(cancelled) => stopped.push(cancelled),
            // It came to its own end first.
            Err(error) if error.code() == Some("run_ended") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stopped)
}

async fn check_that_runs_exist(client: &Client, runs: &[RunId]) -> anyhow::Result<()> {
    for run in runs {
        match client.get::<serde_json::Value>(&format!("/api/runs/{run}"), &[]).await {
            Err(error) if error.code() == Some("not_found") => {
                anyhow::bail!("the store was restored to a time before this run; ask again")
            }
            // What else can go wrong shows in the feed, which knows how to wait.
            _ => {}
        }
    }
    Ok(())
}
