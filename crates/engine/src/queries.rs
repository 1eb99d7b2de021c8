//! Everything that endpoints read: a view of the store without its writes. Changes go through [`crate::commands`].

use domain::{
    agent::Agent,
    event::Event,
    ids::{AgentId, EventId, ProposalId, RoomId, RoundId, RunId, SkillId, UploadId, UserId},
    message::Message,
    name::Name,
    owner::Owner,
    position::{Epoch, Position, Seq},
    room::{Room, RoomPolicy, RoomSummary},
    run::Run,
    skill::{FilePath, Proposal, Round, Skill, SkillFile, SkillName, TrainingRoom},
    time::Timestamp,
    upload::Upload,
};
use std::{collections::BTreeMap, sync::Arc};
use store::{
    ApprovalPage, ListCursor, MessageHistory, NamedRun, RunFilter, SkillStats, SkillVersion, Store, StoreError,
    UsageQuery, UsageRow, WorkspaceUse,
    journal::{Follower, Page},
    notify::{Notifier, OwnerWatch},
};

/// A cheaply cloned handle. Every query names the workspace; a foreign id and an unknown id look the same.
#[derive(Clone)]
pub struct Queries(Store);

/// Passes queries on to the store.
macro_rules! queries {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $found:ty;)*) => {
        impl Queries {
            $(pub async fn $name(&self, $($argument: $kind),*) -> Result<$found, StoreError> {
                self.0.$name($($argument),*).await
            })*
        }
    };
}

queries! {
    agents(owner: &Owner) -> Vec<Agent>;
    agent(owner: &Owner, id: AgentId) -> Agent;
    rooms(owner: &Owner, limit: u32) -> Vec<RoomSummary>;
    rooms_before(owner: &Owner, cursor: Option<ListCursor>, archived: Option<bool>, limit: u32) -> Vec<RoomSummary>;
    room_summary(owner: &Owner, id: RoomId) -> RoomSummary;
    room(owner: &Owner, id: RoomId) -> Room;
    room_with_agents(owner: &Owner, room: RoomId) -> (RoomPolicy, Vec<Agent>);
    history(owner: &Owner, room: RoomId, since: Seq, before: Option<Seq>, limit: u32) -> MessageHistory;
    history_after(owner: &Owner, room: RoomId, since: Seq, before: Option<Seq>, limit: u32) -> MessageHistory;
    page(owner: &Owner, room: RoomId, after: &Position, limit: u32, with_raw: bool) -> Page;
    follow(owner: &Owner, room: RoomId, after: &Position, notifier: Arc<Notifier>) -> Follower;
    run(owner: &Owner, id: RunId) -> Run;
    child_runs(owner: &Owner, run: RunId) -> Vec<Run>;
    run_tree(owner: &Owner, run: RunId) -> Vec<NamedRun>;
    named_runs(owner: &Owner, filter: &RunFilter) -> Vec<NamedRun>;
    named_runs_of_all(filter: &RunFilter) -> Vec<NamedRun>;
    workspace_uses(limit: u32) -> Vec<WorkspaceUse>;
    has_run_events(run: &Run, after: Seq) -> bool;
    run_events(room: RoomId, run: RunId, queued_seq: Seq) -> Vec<Event>;
    run_milestones(run: &Run) -> Vec<Event>;
    ended_runs(owner: &Owner, agent: AgentId, since: Timestamp, limit: u32) -> Vec<Run>;
    message_of_run(run: &Run) -> Option<Message>;
    skills(owner: &Owner) -> Vec<Skill>;
    skill(owner: &Owner, name: &SkillName) -> Skill;
    skill_stats(owner: &Owner) -> BTreeMap<SkillId, SkillStats>;
    skill_versions(owner: &Owner, name: &SkillName) -> Vec<SkillVersion>;
    skill_file(owner: &Owner, name: &SkillName, version: u32, path: &FilePath) -> SkillFile;
    training_rooms(owner: &Owner, name: &SkillName) -> Vec<TrainingRoom>;
    training_rounds(owner: &Owner, name: &SkillName, limit: u32) -> Vec<Round>;
    training_round(owner: &Owner, name: &SkillName, id: RoundId) -> Round;
    proposals(owner: &Owner, name: &SkillName) -> Vec<Proposal>;
    proposal(owner: &Owner, name: &SkillName, id: ProposalId) -> Proposal;
    upload(owner: &Owner, id: UploadId) -> Upload;
    uploads(owner: &Owner, before: Option<UploadId>, limit: u32) -> Vec<Upload>;
    waiting_approvals(owner: &Owner, after: Option<EventId>, limit: u32) -> ApprovalPage;
    usage(owner: &Owner, query: &UsageQuery) -> Vec<UsageRow>;
    member_named(owner: &Owner, name: &Name) -> Option<UserId>;
}

impl Queries {
    pub(crate) fn new(store: Store) -> Self {
        Self(store)
    }

    pub fn epoch(&self) -> &Epoch {
        self.0.epoch()
    }

    /// Watches the lists and rooms of a workspace.
    pub fn watch(&self, owner: &Owner) -> OwnerWatch {
        self.0.watch(owner)
    }
}
