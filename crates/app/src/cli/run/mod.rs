//! `greenroom run`: posts a message to an agent and prints the answer as it streams.
//!
//! The message is posted to a room (a new one, or `--room`), and the room's feed is followed from there. A run does not
//! depend on its reader: after a lost connection the feed resumes after the last event, without loss or duplicates.

mod answer_printer;
mod question;

pub(super) use answer_printer::AnswerPrinter;
pub(super) use question::{PostedQuestion, room_name};

use super::{
    Exit, ServerArgs, cancel,
    client::{
        ApiClient, ClientError,
        feed::{FeedItem, RoomFeed},
        responses::CancelResponse,
    },
};
use crate::terminal::{sanitize, screen::Screen, spinner};
use anyhow::Context as _;
use clap::Args;
use domain::ids::RunId;
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

/// How long the server may be unreachable during an answer. Long enough for a restart.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait for the last events of a stopped run.
const LAST_EVENTS: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub struct RunArgs {
    /// The agent's name or id.
    agent: String,
    /// What to say; `-` reads it from standard input.
    message: String,
    /// Continue in this room instead of a new one: its name or id, or a part of the id.
    #[arg(long, value_name = "ROOM")]
    room: Option<String>,
    /// Print the run's events as JSON, one per line, instead of its text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: RunArgs) -> anyhow::Result<Exit> {
    let text = question::message_text(&arguments.message)?;
    let client = ApiClient::new(&arguments.connection)?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    let posted = {
        let room = match &arguments.room {
            Some(wanted) => Some(client.find_room(wanted).await?),
            None => None,
        };
        let mut posting = pin!(question::post_message(&client, &arguments.agent, room, &text));
        tokio::select! {
            posted = &mut posting => posted?,
            Some(()) = interrupts.recv() => {
                // It is unknown whether the message arrived; only the response has the runs to stop.
                writeln!(io::stderr(), "stopping as soon as the server has answered; again to stop waiting")?;
                let posted = tokio::select! {
                    posted = &mut posting => posted?,
                    Some(()) = interrupts.recv() => return Ok(Exit::Interrupted),
                };
                let runs = posted.runs.iter().map(|run| run.id).collect();
                for said in stop(client.clone(), runs).await? {
                    writeln!(io::stderr(), "{}", sanitize::line(&said.to_string(), 400))?;
                }
                return Ok(Exit::Interrupted);
            }
        }
    };
    let feed = RoomFeed::after(client.clone(), posted.room, posted.seq.to_string(), posted.seq, PATIENCE);
    let printer = AnswerPrinter::new(&posted, arguments.json);
    AnswerWatcher { client, feed, printer, interrupts, screen: Screen::standard(), stopping: None }.follow().await
}

type StopFuture = Pin<Box<dyn Future<Output = Result<Vec<CancelResponse>, ClientError>> + Send>>;

/// Prints an answer as it streams, and handles interrupts.
struct AnswerWatcher<Out, Side> {
    client: ApiClient,
    feed: RoomFeed,
    printer: AnswerPrinter,
    interrupts: Signal,
    screen: Screen<Out, Side>,
    /// Set after the first interrupt.
    stopping: Option<StopFuture>,
}

impl<Out: Write, Side: Write> AnswerWatcher<Out, Side> {
    async fn follow(mut self) -> anyhow::Result<Exit> {
        while !self.printer.is_finished() {
            match self.step().await? {
                WatchStep::Item(Ok(FeedItem::Event(event))) => self.printer.print_event(&event, &mut self.screen)?,
                WatchStep::Item(Ok(FeedItem::Reset)) => {
                    self.screen.note("the store was restored; looking for where the answer goes on")?;
                    check_that_runs_exist(&self.client, self.printer.open_runs()).await?;
                }
                WatchStep::Item(Err(error)) => {
                    self.screen.finish()?;
                    let (room, position) = (self.printer.room(), self.feed.position());
                    let go_on = format!("greenroom events {room} --after {position} --follow");
                    return Err(anyhow::Error::new(error).context(format!("see how the answer goes on with: {go_on}")));
                }
                WatchStep::Interrupt if self.stopping.is_some() => {
                    self.screen.finish()?;
                    self.screen.announce("not waiting for the run to stop")?;
                    return Ok(Exit::Interrupted);
                }
                WatchStep::Interrupt => {
                    self.screen.note("stopping; again to stop waiting")?;
                    self.stopping = Some(Box::pin(stop(self.client.clone(), self.printer.open_runs().to_vec())));
                }
                WatchStep::Stopped(result) => {
                    let stopped = result.with_context(|| {
                        let open: Vec<String> = self.printer.open_runs().iter().map(ToString::to_string).collect();
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
        // The feed can end before the response to our cancel request, which has the receipt.
        if let Some(stopping) = self.stopping {
            let stopped = timeout(LAST_EVENTS, stopping).await.unwrap_or_else(|_| Ok(Vec::new()))?;
            stopped.iter().try_for_each(|said| self.screen.announce(&said.to_string()))?;
            return Ok(Exit::Interrupted);
        }
        Ok(self.printer.exit())
    }

    /// Waits for the next item, interrupt or stop result.
    async fn step(&mut self) -> anyhow::Result<WatchStep> {
        let broken = self.feed.disconnected();
        let mut ticks = interval(spinner::TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.reset();
        // Kept across the spinner's ticks, which must not restart its waits and reconnections.
        let mut next = pin!(self.feed.next());
        loop {
            tokio::select! {
                item = &mut next => return Ok(WatchStep::Item(item)),
                Some(()) = self.interrupts.recv() => return Ok(WatchStep::Interrupt),
                stopped = stop_result(&mut self.stopping) => {
                    self.stopping = None;
                    return Ok(WatchStep::Stopped(stopped));
                }
                _ = ticks.tick(), if self.screen.spins() => {
                    let label = match () {
                        () if self.stopping.is_some() => "stopping",
                        () if broken.load(Ordering::Relaxed) => "connection lost, waiting for the server",
                        () => self.printer.waiting_for(),
                    };
                    self.screen.tick(label)?;
                }
            }
        }
    }

    /// Prints the remaining events of runs that have already ended.
    async fn drain(&mut self) -> anyhow::Result<()> {
        let rest = async {
            while !self.printer.is_finished() {
                if let FeedItem::Event(event) = self.feed.next().await? {
                    self.printer.print_event(&event, &mut self.screen)?;
                }
            }
            Ok(())
        };
        timeout(LAST_EVENTS, rest).await.unwrap_or(Ok(()))
    }
}

enum WatchStep {
    Item(Result<FeedItem, ClientError>),
    Interrupt,
    Stopped(Result<Vec<CancelResponse>, ClientError>),
}

async fn stop_result(stopping: &mut Option<StopFuture>) -> Result<Vec<CancelResponse>, ClientError> {
    match stopping {
        Some(stopping) => stopping.await,
        None => std::future::pending().await,
    }
}

/// Stops the runs in reverse order: otherwise the end of one would start the next.
async fn stop(client: ApiClient, runs: Vec<RunId>) -> Result<Vec<CancelResponse>, ClientError> {
    let mut stopped = Vec::new();
    for run in runs.into_iter().rev() {
        match cancel::stop(&client, run).await {
            Ok(cancelled) => stopped.push(cancelled),
            // The run had already ended.
            Err(error) if error.code() == Some("run_ended") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stopped)
}

async fn check_that_runs_exist(client: &ApiClient, runs: &[RunId]) -> anyhow::Result<()> {
    for run in runs {
        match client.get::<serde_json::Value>(&format!("/api/runs/{run}"), &[]).await {
            Err(error) if error.code() == Some("not_found") => {
                anyhow::bail!("the store was restored to a time before this run; ask again")
            }
            // Other errors also show up in the feed, which handles them.
            _ => {}
        }
    }
    Ok(())
}
