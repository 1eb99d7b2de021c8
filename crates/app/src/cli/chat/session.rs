//! A conversation: asks for a line, posts it, prints the answers, and asks again.

use super::{
    command::{self, ChatCommand, HELP},
    input::TypedLines,
};
use crate::{
    cli::{
        Exit,
        approve::{self, ApprovalAnswer},
        cancel,
        client::{
            ApiClient, ClientError, REQUEST_DEADLINE,
            feed::{FeedEvent, FeedItem, RoomFeed},
            responses::{AgentListResponse, AgentResponse, PostResponse, RoomResponse},
        },
        find::short_id,
        run::{AnswerPrinter, PATIENCE, PostedQuestion, room_name},
    },
    terminal::{screen::Screen, spinner},
};
use domain::{
    event::{ApprovalRequested, EventBody},
    ids::{AgentId, RoomId, RunId},
    position::Seq,
};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    io::{self, Write as _},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, timeout},
};

/// How long to wait for the last events of a stopped run.
const LAST_EVENTS: Duration = Duration::from_secs(5);

pub struct TerminalChat {
    client: ApiClient,
    agent: AgentResponse,
    names: HashMap<AgentId, String>,
    room: Option<RoomResponse>,
    lines: TypedLines,
    interrupts: Signal,
    screen: Screen<io::Stdout, io::Stderr>,
}

/// How the answers to a message ended.
enum AnswerEnd {
    Finished,
    InputEnded,
}

impl TerminalChat {
    pub fn start(
        client: ApiClient,
        agent: AgentResponse,
        names: HashMap<AgentId, String>,
        room: Option<RoomResponse>,
    ) -> anyhow::Result<Self> {
        let interrupts = signal(SignalKind::interrupt())?;
        let screen = Screen::standard().with_markdown();
        Ok(Self { client, agent, names, room, lines: TypedLines::standard(), interrupts, screen })
    }

    pub async fn run(mut self) -> anyhow::Result<Exit> {
        if self.lines.is_terminal {
            self.screen.note(&format!("Chat with {}. /help lists the commands.", self.agent.name))?;
        }
        loop {
            let Some(text) = self.ask().await? else { return Ok(Exit::Success) };
            if text.trim().is_empty() {
                continue;
            }
            match command::parse(&text) {
                Some(ChatCommand::Quit) => return Ok(Exit::Success),
                Some(command) => self.carry_out(command).await?,
                None => match self.converse(&text).await {
                    Ok(AnswerEnd::Finished) => {}
                    Ok(AnswerEnd::InputEnded) => return Ok(Exit::Success),
                    // A refused message is said, and the conversation goes on.
                    Err(error) if is_refusal(&error) && self.lines.is_terminal => {
                        self.screen.announce(&format!("{error:#}"))?;
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// The next message; `None` if nobody types any more.
    async fn ask(&mut self) -> anyhow::Result<Option<String>> {
        let mut text = String::new();
        loop {
            self.prompt(if text.is_empty() { "> " } else { "… " })?;
            let line = tokio::select! {
                line = self.lines.next() => line,
                Some(()) = self.interrupts.recv() => None,
            };
            let Some(line) = line else {
                if self.lines.is_terminal {
                    writeln!(io::stderr())?;
                }
                return Ok(None);
            };
            match line.strip_suffix('\\') {
                Some(part) => {
                    text.push_str(part);
                    text.push('\n');
                }
                None => return Ok(Some(text + &line)),
            }
        }
    }

    fn prompt(&self, prompt: &str) -> io::Result<()> {
        if self.lines.is_terminal {
            write!(io::stderr(), "{prompt}")?;
            io::stderr().flush()?;
        }
        Ok(())
    }

    async fn carry_out(&mut self, command: ChatCommand) -> anyhow::Result<()> {
        match command {
            ChatCommand::Help => HELP.lines().try_for_each(|line| self.screen.note(line))?,
            ChatCommand::New => {
                self.room = None;
                self.screen.note("The next message starts a new room.")?;
            }
            ChatCommand::Room => {
                let said = match &self.room {
                    Some(room) => {
                        format!("{} · continue with: greenroom chat --room {}", room.name, short_id(room.id.0))
                    }
                    None => "The next message starts a room.".to_owned(),
                };
                self.screen.note(&said)?;
            }
            ChatCommand::Agent(wanted) => {
                let agents: AgentListResponse = self.client.get("/api/agents", &[]).await?;
                match agents.find_or_list(&wanted) {
                    Ok(agent) => {
                        (self.agent, self.room) = (agent.clone(), None);
                        self.names = agents.names();
                        self.screen.note(&format!("The next message asks {} in a new room.", self.agent.name))?;
                    }
                    Err(error) => self.screen.announce(&format!("{error:#}"))?,
                }
            }
            ChatCommand::Stop => self.screen.note("Nothing is being answered.")?,
            ChatCommand::Quit => {}
        }
        Ok(())
    }

    /// Posts a message and prints what is answered.
    async fn converse(&mut self, text: &str) -> anyhow::Result<AnswerEnd> {
        let room = self.room(text).await?;
        let path = format!("/api/rooms/{room}/messages");
        let posted: PostResponse = self.client.post(&path, &json!({"text": text}), REQUEST_DEADLINE).await?;
        let seq: Seq = posted.message.seq;
        let question = PostedQuestion { room, seq, runs: posted.runs, names: self.names.clone() };
        let mut printer = AnswerPrinter::new(&question, false).without_approvals();
        let mut feed = RoomFeed::after(self.client.clone(), room, seq.to_string(), seq, PATIENCE);
        let mut waiting: VecDeque<(RunId, ApprovalRequested)> = VecDeque::new();
        let mut is_stopping = false;
        let mut ticks = interval(spinner::TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !printer.is_finished() {
            tokio::select! {
                item = feed.next() => match item? {
                    FeedItem::Event(event) => {
                        printer.print_event(&event, &mut self.screen)?;
                        if note_approval(&event, &mut waiting) {
                            self.ask_approval(waiting.front())?;
                        }
                    }
                    FeedItem::Reset => self.screen.note("The store was restored; ask again.")?,
                },
                Some(()) = self.interrupts.recv() => {
                    if is_stopping {
                        self.screen.finish()?;
                        self.screen.announce("Not waiting for the answer to stop.")?;
                        return Ok(AnswerEnd::Finished);
                    }
                    is_stopping = true;
                    self.stop(&printer).await?;
                }
                // The next line of a script is its next message, unless something is asked.
                line = self.lines.next(), if self.lines.is_terminal || !waiting.is_empty() => {
                    let Some(line) = line else {
                        // Nobody is left to ask; the answer goes on.
                        for (run, asked) in waiting.drain(..) {
                            self.resolve(run, &asked, &ApprovalAnswer::Deny).await?;
                        }
                        self.drain(&mut feed, &mut printer).await?;
                        return Ok(AnswerEnd::InputEnded);
                    };
                    if command::parse(&line) == Some(ChatCommand::Stop) {
                        is_stopping = true;
                        self.stop(&printer).await?;
                    } else {
                        self.answer_approval(&line, &mut waiting).await?;
                    }
                }
                _ = ticks.tick(), if self.screen.spins() && waiting.is_empty() => {
                    self.screen.tick(if is_stopping { "Stopping…" } else { printer.waiting_for() })?;
                }
            }
        }
        self.screen.finish()?;
        Ok(AnswerEnd::Finished)
    }

    /// The room of the conversation; the first message creates it.
    async fn room(&mut self, text: &str) -> anyhow::Result<RoomId> {
        if let Some(room) = &self.room {
            return Ok(room.id);
        }
        let body = json!({"name": room_name(text, &self.agent.name), "agents": [self.agent.id]});
        let room: RoomResponse = self.client.post("/api/rooms", &body, REQUEST_DEADLINE).await?;
        Ok(self.room.insert(room).id)
    }

    /// Stops the runs, the last one first: otherwise the end of one would start the next. What was said stays in the room.
    async fn stop(&mut self, printer: &AnswerPrinter) -> anyhow::Result<()> {
        self.screen.note("Stopping… (Ctrl-C again to stop waiting)")?;
        for run in printer.open_runs().iter().rev() {
            match cancel::stop(&self.client, *run).await {
                Ok(_) => {}
                Err(error) if error.code() == Some("run_ended") => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn ask_approval(&mut self, asked: Option<&(RunId, ApprovalRequested)>) -> io::Result<()> {
        let Some((_, asked)) = asked else { return Ok(()) };
        self.screen.finish()?;
        match asked.is_question {
            true => self.screen.announce(&format!("? {}", question_text(asked)))?,
            false => self.screen.announce(&format!("Allow {}? {} [y/n/a]", asked.name, asked.input))?,
        }
        self.prompt("? ")
    }

    async fn answer_approval(
        &mut self,
        line: &str,
        waiting: &mut VecDeque<(RunId, ApprovalRequested)>,
    ) -> anyhow::Result<()> {
        let Some((run, asked)) = waiting.front().cloned() else {
            self.screen.note("Wait for the answer, or stop it with /stop.")?;
            return Ok(());
        };
        let Some(answer) = command::approval_answer(line, asked.is_question, asked.pattern.is_some()) else {
            return Ok(self.ask_approval(waiting.front())?);
        };
        waiting.pop_front();
        match self.resolve(run, &asked, &answer).await {
            // Somebody else was faster, or it was too late.
            Err(error) if error.code().is_some() => self.screen.note(&error.to_string())?,
            resolved => resolved?,
        }
        Ok(self.ask_approval(waiting.front())?)
    }

    async fn resolve(&self, run: RunId, asked: &ApprovalRequested, answer: &ApprovalAnswer) -> Result<(), ClientError> {
        approve::resolve(&self.client, run, asked.approval_id, answer).await
    }

    /// Prints what is left of an answer whose input has ended.
    async fn drain(&mut self, feed: &mut RoomFeed, printer: &mut AnswerPrinter) -> anyhow::Result<()> {
        while !printer.is_finished() {
            let next = tokio::select! {
                next = feed.next() => next?,
                Some(()) = self.interrupts.recv() => {
                    self.stop(printer).await?;
                    match timeout(LAST_EVENTS, feed.next()).await {
                        Ok(next) => next?,
                        Err(_) => break,
                    }
                }
            };
            if let FeedItem::Event(event) = next {
                printer.print_event(&event, &mut self.screen)?;
                let mut asked = VecDeque::new();
                if note_approval(&event, &mut asked)
                    && let Some((run, asked)) = asked.pop_front()
                {
                    self.resolve(run, &asked, &ApprovalAnswer::Deny).await?;
                }
            }
        }
        Ok(self.screen.finish()?)
    }
}

/// Keeps what waits for an answer. Returns whether somebody must be asked now.
fn note_approval(event: &FeedEvent, waiting: &mut VecDeque<(RunId, ApprovalRequested)>) -> bool {
    match (&event.body, event.run_id) {
        (Some(EventBody::ApprovalRequested(asked)), Some(run)) => {
            waiting.push_back((run, asked.clone()));
            waiting.len() == 1
        }
        (Some(EventBody::ApprovalResolved(resolved)), _) => {
            waiting.retain(|(_, asked)| asked.approval_id != resolved.approval_id);
            false
        }
        _ => false,
    }
}

fn question_text(asked: &ApprovalRequested) -> String {
    asked.input["question"].as_str().map_or_else(|| asked.input.to_string(), str::to_owned)
}

fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(|error| error.code().is_some())
}
