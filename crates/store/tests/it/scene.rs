//! Shared helpers of the cases: rooms, events, runs, and waiting with a deadline.

use domain::{
    actor::Actor,
    event::{Event, EventBody, NewEvent, RunCompleted, RunQueued, Status},
    ids::{AgentId, MessageId, RoomId, RunId},
    name::Name,
    owner::Owner,
    position::{Position, Seq},
    room::{Room, RoomPolicy},
    run::RunStatus,
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::{collections::HashSet, sync::Arc, time::Duration};
use store::{
    IdempotentRequest, Store, StoreError,
    journal::{Batch, Commit, Committed, Follower, Frame, Guard, RowChange, RunEnding, SeqRef},
    notify::Notifier,
    queue::Claim,
};

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(60);
pub const LEASE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("finished before the deadline")
}

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub fn me() -> Owner {
    Owner::local()
}

pub fn stranger() -> Owner {
    Owner::new(name("stranger"))
}

/// An owner of a workspace.
pub fn by(owner: &Owner) -> Actor {
    Actor { workspace: owner.clone(), ..Actor::local() }
}

pub fn at(seq: Seq) -> Position {
    Position { epoch: None, seq }
}

pub fn attempt(key: &str, body: u8) -> IdempotentRequest {
    IdempotentRequest { key: key.into(), fingerprint: [body; 32] }
}

/// A status event with a text.
pub fn says(text: impl Into<String>) -> NewEvent {
    NewEvent::new(Status { status: "said".into(), message: text.into(), message_id: None })
}

pub fn said(event: &Event) -> String {
    match event.body().unwrap() {
        EventBody::Status(status) => status.message,
        other => panic!("{other:?} is not a status event"),
    }
}

pub fn append(room: RoomId, events: Vec<NewEvent>) -> Commit {
    Commit { room_id: room, guard: Guard::None, events, changes: Vec::new() }
}

/// Renames a room and sets its policy.
pub fn renaming(room: RoomId, name: &Name, policy: &RoomPolicy, attempt: Option<IdempotentRequest>) -> Commit {
    let mut changes = Vec::new();
    if let Some(attempt) = attempt {
        changes.push(RowChange::StoreIdempotencyKey { owner: me(), attempt, result: room.to_string() });
    }
    changes.push(RowChange::UpdateRoom { owner: me(), name: Some(name.clone()), policy: Some(policy.clone()) });
    Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }
}

pub fn creating(owner: &Owner) -> Commit {
    let now = Timestamp::now();
    let room = Room {
        id: RoomId::generate(),
        name: name("a room"),
        agents: Vec::new(),
        project_id: None,
        parent_run_id: None,
        forked_from: None,
        policy: RoomPolicy::default(),
        head: 0,
        created_at: now,
        updated_at: now,
    };
    Commit {
        room_id: room.id,
        guard: Guard::None,
        events: Vec::new(),
        changes: vec![RowChange::CreateRoom { owner: owner.clone(), room }],
    }
}

/// A new room without events.
pub async fn room(store: &Store) -> RoomId {
    room_of(store, &me()).await
}

pub async fn room_of(store: &Store, owner: &Owner) -> RoomId {
    let commit = creating(owner);
    let id = commit.room_id;
    store.commit(commit).await.unwrap();
    id
}

/// Submits all commits at once and returns their outcomes in the same order.
pub async fn together(store: &Store, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
    within(futures_util::future::join_all(commits.into_iter().map(|commit| store.commit(commit)))).await
}

/// The whole journal, page by page. Fails on a gap.
pub async fn journal(store: &Store, room: RoomId) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let page = store.page(&me(), room, &at(events.len() as Seq), 1000, false).await.unwrap();
        if page.events.is_empty() {
            assert_eq!(page.head, events.len() as Seq, "the pages end at the head");
            break;
        }
        events.extend(page.events);
    }
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as Seq), "seqs are 1, 2, 3 … without a gap");
    let ids: HashSet<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len(), "every event is stored once");
    events
}

pub fn json(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.write_json(&mut bytes, false);
    bytes
}

pub async fn follow(store: &Store, room: RoomId, after: Seq) -> Follower {
    store.follow(&me(), room, &at(after), Arc::new(Notifier::default())).await.unwrap()
}

/// Reads, waiting for the notifier, until `seq` is returned. Fails on a gap.
pub async fn read_until(follower: &mut Follower, seq: Seq) -> Vec<Arc<Frame>> {
    within(async {
        let mut read: Vec<Arc<Frame>> = Vec::new();
        while follower.seq() < seq {
            let before = follower.seq();
            match follower.next().await.unwrap() {
                Batch::Frames(frames) => {
                    assert!(frames.iter().map(|f| f.seq).eq(before + 1..=follower.seq()), "n comes before n + 1");
                    read.extend(frames);
                }
                Batch::CaughtUp => follower.notifier().clone().notified().await,
                Batch::Large { .. } => match follower.next_large().await.unwrap() {
                    Batch::Frames(frames) => read.extend(frames),
                    other => panic!("{other:?}"),
                },
                Batch::Reset { .. } => panic!("unexpected reset"),
            }
        }
        read
    })
    .await
}

pub struct TestRun {
    pub id: RunId,
    pub agent: AgentId,
    pub message: MessageId,
}

impl TestRun {
    pub fn new() -> Self {
        Self { id: RunId::generate(), agent: AgentId::generate(), message: MessageId::generate() }
    }

    pub fn queueing(&self, room: RoomId) -> Commit {
        self.queueing_for(&me(), room)
    }

    pub fn queueing_for(&self, owner: &Owner, room: RoomId) -> Commit {
        Commit {
            room_id: room,
            guard: Guard::None,
            events: vec![self.event(RunQueued { message_id: self.message })],
            changes: vec![RowChange::QueueRun {
                owner: owner.clone(),
                run_id: self.id,
                agent_id: self.agent,
                message_id: self.message,
                place: None,
                seq: SeqRef::Event(0),
                cell: SeqRef::Event(0),
                claim: None,
            }],
        }
    }

    /// Queues runs that execute side by side.
    pub async fn queued_in_one_cell(store: &Store, room: RoomId, count: usize) -> Vec<Self> {
        let runs: Vec<Self> = (0..count).map(|_| Self::new()).collect();
        let mut all = append(room, Vec::new());
        for (index, run) in runs.iter().enumerate() {
            let Commit { events, changes, .. } = run.queueing(room);
            all.events.extend(events);
            all.changes.extend(changes.into_iter().map(|change| match change {
                RowChange::QueueRun { owner, run_id, agent_id, message_id, claim, .. } => {
                    let (seq, cell) = (SeqRef::Event(index), SeqRef::Event(0));
                    RowChange::QueueRun { owner, run_id, agent_id, message_id, place: None, seq, cell, claim }
                }
                other => other,
            }));
        }
        store.commit(all).await.unwrap();
        runs
    }

    pub async fn queued(store: &Store, room: RoomId) -> Self {
        let run = Self::new();
        store.commit(run.queueing(room)).await.unwrap();
        run
    }

    pub fn event(&self, body: impl Into<EventBody>) -> NewEvent {
        NewEvent::new(body).of_run(self.id, self.agent)
    }

    pub fn says(&self, text: &str) -> NewEvent {
        says(text).of_run(self.id, self.agent)
    }

    /// A commit that starts the run, if it is still queued, and ends it.
    pub fn ending(&self, room: RoomId, guard: Guard) -> Commit {
        let (usage, cost, duration_ms) = (Usage { input_tokens: 3, ..Usage::default() }, None, 5);
        let ending = RunEnding {
            status: RunStatus::Completed,
            usage,
            cost,
            model: Some("model".into()),
            duration_ms,
            error: None,
            receipt: None,
        };
        Commit {
            room_id: room,
            guard,
            events: vec![self.event(RunCompleted { usage, cost, cost_nanos: cost.map(Cost::as_nanos), duration_ms })],
            changes: vec![
                RowChange::RunStatus { run_id: self.id, status: RunStatus::Running },
                RowChange::EndRun { run_id: self.id, ending },
            ],
        }
    }
}

pub fn held(claim: &Claim) -> Guard {
    Guard::Lease { run_id: claim.run_id, fence: claim.fence }
}

/// Claims everything that can be claimed now.
pub async fn claim(store: &Store, holder: &str) -> Vec<Claim> {
    store.claim_runs(holder, 1000, LEASE).await.unwrap()
}
