//! Tells a WebSocket what agents say, in whichever room, and how the list of agents changes. Every room of the workspace
//! is watched, and counts as a subscription; a room is read only while it has new events, so that a thousand quiet rooms cost
//! one query.

use super::{
    dialect::{DialectFrame, MessagesTranslator, RunEvent},
    socket_protocol::SocketMessage,
};
use crate::{
    error::{Code, Problem},
    shares::{MemoryPermit, StreamPermit, SubscriptionPermits},
};
use domain::{
    agent::Agent,
    ids::{AgentId, RoomId, RunId},
    owner::Owner,
    position::{Position, Seq},
    room::RoomSummary,
    time::Timestamp,
};
use engine::Queries;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Bound,
    sync::Arc,
};
use store::{
    StoreError,
    journal::{Batch, Follower, Frame},
    notify::OwnerWatch,
};

/// Only the newest rooms are watched.
const MAX_ROOMS: u32 = 1000;

pub struct AgentFeed {
    queries: Queries,
    owner: Owner,
    /// The agents that the client asked for; `None` for all, also those that are created later.
    selected: Option<BTreeSet<AgentId>>,
    watch: OwnerWatch,
    /// Older events are not sent.
    since: Timestamp,
    /// The agents that the client knows, with the time of their last change.
    agents: BTreeMap<AgentId, Timestamp>,
    rooms: BTreeMap<RoomId, WatchedRoom>,
    /// Rooms that may have new events.
    pending: BTreeSet<RoomId>,
    /// The pending room that was read last: the others are next.
    last_read: Option<RoomId>,
    /// One for each watched room.
    subscriptions: SubscriptionPermits,
    /// The last read failed, so the next one checks everything.
    is_stale: bool,
}

struct WatchedRoom {
    /// Where reading begins.
    head: Seq,
    /// Opened with the room's first new event, and closed when no selected agent speaks there.
    reader: Option<Box<RoomAgents>>,
}

struct RoomAgents {
    follower: Follower,
    /// The unfinished runs of the selected agents.
    runs: BTreeMap<RunId, MessagesTranslator>,
}

/// What the client does not know yet, at most one batch of events.
#[derive(Default)]
pub struct AgentNews {
    pub messages: Vec<SocketMessage>,
    /// The memory of a large event, until it is sent.
    pub memory: Option<MemoryPermit>,
}

impl AgentFeed {
    /// Starts watching, and returns the agents. Fails with `NotFound` if a selected agent does not exist.
    pub async fn open(
        queries: &Queries,
        owner: &Owner,
        selected: Option<BTreeSet<AgentId>>,
        subscriptions: SubscriptionPermits,
    ) -> Result<(Self, Vec<Agent>), Problem> {
        let mut feed = Self {
            watch: queries.watch(owner),
            queries: queries.clone(),
            owner: owner.clone(),
            selected,
            since: Timestamp::now(),
            agents: BTreeMap::new(),
            rooms: BTreeMap::new(),
            pending: BTreeSet::new(),
            last_read: None,
            subscriptions,
            is_stale: false,
        };
        let agents = feed.selected_agents().await?;
        if feed.selected.as_ref().is_some_and(|selected| selected.len() != agents.len()) {
            return Err(StoreError::NotFound.into());
        }
        feed.agents = agents.iter().map(|agent| (agent.id, agent.updated_at)).collect();
        // Twice: a room may change after it was listed and before it is watched.
        feed.check_rooms().await?;
        feed.check_rooms().await?;
        Ok((feed, agents))
    }

    /// Waits until there may be something to send.
    pub async fn wait(&self) {
        if self.pending.is_empty() {
            self.watch.changed().await;
        }
    }

    /// What the client does not know yet. With `all`, everything is checked: a notification may be lost. Fails if there are
    /// more rooms now than the user may follow.
    pub async fn news(&mut self, all: bool, permit: &StreamPermit) -> Result<AgentNews, Problem> {
        let mut news = AgentNews::default();
        self.is_stale |= all;
        match self.collect(&mut news, permit).await {
            Ok(()) => self.is_stale = false,
            Err(problem) if problem.code() == Code::TooManyStreams => return Err(problem),
            Err(problem) => {
                // Everything is checked again with the next wake-up or heartbeat, not at once.
                problem.log("websocket");
                self.is_stale = true;
                self.pending.clear();
            }
        }
        Ok(news)
    }

    async fn collect(&mut self, news: &mut AgentNews, permit: &StreamPermit) -> Result<(), Problem> {
        let changed = self.watch.take_changes();
        self.pending.extend(changed.rooms);
        if self.is_stale || changed.agents {
            self.check_agents(&mut news.messages).await?;
        }
        if self.is_stale || changed.room_list {
            self.check_rooms().await?;
        }
        while news.messages.is_empty()
            && let Some(room) = self.next_pending()
        {
            let mut batch = self.next_batch(room).await;
            if let Ok(Batch::Large { bytes }) = batch {
                news.memory = Some(permit.take_memory(bytes).await?);
                batch = match self.rooms.get_mut(&room).and_then(|room| room.reader.as_mut()) {
                    Some(reader) => reader.follower.next_large().await,
                    None => Ok(Batch::CaughtUp),
                };
            }
            match batch {
                Ok(Batch::Frames(frames)) => {
                    frames.iter().for_each(|frame| self.translate(room, frame, &mut news.messages));
                    self.pending.insert(room);
                }
                Ok(Batch::CaughtUp | Batch::Reset { .. } | Batch::Large { .. }) => self.close_quiet(room),
                Err(StoreError::NotFound) => drop(self.rooms.remove(&room)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes the next room that may have new events, each in turn.
    fn next_pending(&mut self) -> Option<RoomId> {
        let behind = self.last_read.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.pending.range((behind, Bound::Unbounded)).next().or_else(|| self.pending.first()).copied()?;
        self.pending.remove(&next);
        self.last_read = Some(next);
        Some(next)
    }

    async fn next_batch(&mut self, id: RoomId) -> Result<Batch, StoreError> {
        let Some(room) = self.rooms.get_mut(&id) else { return Ok(Batch::CaughtUp) };
        if room.reader.is_none() {
            let after = Position { epoch: None, seq: room.head };
            let follower = self.queries.follow(&self.owner, id, &after, Arc::default()).await?;
            room.reader = Some(Box::new(RoomAgents { follower, runs: BTreeMap::new() }));
        }
        match &mut room.reader {
            Some(reader) => reader.follower.next().await,
            None => Ok(Batch::CaughtUp),
        }
    }

    /// Closes the reader of a room that has no more events for now, unless an answer has begun.
    fn close_quiet(&mut self, room: RoomId) {
        let Some(room) = self.rooms.get_mut(&room) else { return };
        if let Some(reader) = room.reader.take_if(|reader| reader.runs.is_empty()) {
            room.head = reader.follower.seq();
        }
    }

    fn translate(&mut self, room_id: RoomId, frame: &Frame, news: &mut Vec<SocketMessage>) {
        let Some(reader) = self.rooms.get_mut(&room_id).and_then(|room| room.reader.as_mut()) else { return };
        let (Some(run_id), Some(event)) = (frame.run_id, RunEvent::parse(frame)) else { return };
        let Some(agent_id) = event.agent_id else { return };
        if self.selected.as_ref().is_some_and(|selected| !selected.contains(&agent_id)) {
            return;
        }
        let frames = reader.runs.entry(run_id).or_default().translate(event);
        news.extend(frames.into_iter().filter_map(|frame| message_of(agent_id, room_id, run_id, frame)));
        if frame.kind.ends_a_run() {
            reader.runs.remove(&run_id);
        }
    }

    async fn check_agents(&mut self, news: &mut Vec<SocketMessage>) -> Result<(), StoreError> {
        let agents = self.selected_agents().await?;
        let known = mem::take(&mut self.agents);
        self.agents = agents.iter().map(|agent| (agent.id, agent.updated_at)).collect();
        let deleted = known.keys().filter(|id| !self.agents.contains_key(*id));
        news.extend(deleted.map(|&agent_id| SocketMessage::AgentDeleted { agent_id }));
        for agent in agents {
            match known.get(&agent.id) {
                None => news.push(SocketMessage::AgentCreated { agent: Box::new(agent) }),
                Some(at) if *at != agent.updated_at => {
                    news.push(SocketMessage::AgentUpdated { agent: Box::new(agent) })
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    async fn selected_agents(&self) -> Result<Vec<Agent>, StoreError> {
        let mut agents = self.queries.agents(&self.owner).await?;
        agents.retain(|agent| self.selected.as_ref().is_none_or(|selected| selected.contains(&agent.id)));
        Ok(agents)
    }

    /// Watches the rooms that there are now, and finds those with new events.
    async fn check_rooms(&mut self) -> Result<(), Problem> {
        let listed = self.queries.rooms(&self.owner, MAX_ROOMS).await?;
        self.subscriptions.resize(listed.len())?;
        self.watch.set_rooms(listed.iter().map(|summary| summary.room.id).collect());
        let mut known = mem::take(&mut self.rooms);
        for RoomSummary { room, .. } in listed {
            // A room that is new to the list and old was quiet for long: its past was not asked for.
            let head = if room.created_at >= self.since { 0 } else { room.head };
            let watched = known.remove(&room.id).unwrap_or(WatchedRoom { head, reader: None });
            if watched.position() < room.head {
                self.pending.insert(room.id);
            }
            self.rooms.insert(room.id, watched);
        }
        Ok(())
    }
}

impl WatchedRoom {
    fn position(&self) -> Seq {
        self.reader.as_ref().map_or(self.head, |reader| reader.follower.seq())
    }
}

/// Status reports are not sent: a room's events have them.
fn message_of(agent_id: AgentId, room_id: RoomId, run_id: RunId, frame: DialectFrame) -> Option<SocketMessage> {
    let DialectFrame { event, mut data } = frame;
    let mut field = |name: &str| data.get_mut(name).map_or(Value::Null, Value::take);
    Some(match event {
        "message" => SocketMessage::AgentMessage { agent_id, room_id, run_id, content: field("content") },
        "completion" => {
            let (tokens, cost, duration) = (field("tokens"), field("cost"), field("duration"));
            SocketMessage::AgentComplete { agent_id, room_id, run_id, tokens, cost, duration }
        }
        "error" => {
            let (error, details) = (field("error"), field("details"));
            SocketMessage::AgentError { agent_id, room_id, run_id, error, details }
        }
        "cancelled" => SocketMessage::AgentCancelled { agent_id, room_id, run_id },
        _ => return None,
    })
}
