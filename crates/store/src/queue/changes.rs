//! Changes of the queue that are committed with events.

use crate::{
    catalog::runs::NewRun,
    commit::{ChangeContext, ClaimOffer, FIRST_FENCE, Refusal, Statement, StopRequest},
    error::signed,
};
use domain::{
    ids::RunId,
    position::Seq,
    run_tree::{MAX_TREE_RUNS, TreePlace},
};

/// Adds a run, held by the worker whose claim was granted.
pub(crate) fn insert(context: &ChangeContext, new: &NewRun<'_>, claim: Option<&ClaimOffer>) -> Statement {
    Statement::new(
        "INSERT INTO queue (run_id, room_id, owner, queued_seq, cell, fence, holder, lease_until, depth) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .with(new.run_id.0)
    .with(context.room.0)
    .with(new.owner.as_str())
    .with(signed(new.queued_seq))
    .with(signed(new.cell))
    .with(if claim.is_some() { signed(FIRST_FENCE) } else { 0 })
    .with(claim.map(|claim| claim.holder.as_str()))
    .with(claim.map(|claim| (context.now + claim.lease).as_millis()))
    .with(new.place.map_or(0, |place| i64::from(place.depth)))
}

/// Lets a run have another child, as long as nobody stops it and its tree is not full. The rows of both are locked until
/// the child is stored, so a stop request comes before it, and refuses it, or after it, and finds it.
pub(crate) fn admit_child(place: &TreePlace) -> [Statement; 2] {
    let counted =
        Statement::new("UPDATE queue SET descendants = descendants + 1 WHERE run_id = $1 AND descendants < $2")
            .with(place.root_id.0)
            .with(i64::from(MAX_TREE_RUNS))
            .must_change_or(Refusal::TreeFull);
    let wanted = Statement::new("UPDATE queue SET depth = depth WHERE run_id = $1 AND stop IS NULL")
        .with(place.parent_id.0)
        .must_change_or(Refusal::ParentStopped);
    [wanted, counted]
}

/// Requests the children of a run that ends to stop: none outlives it (invariant 25).
pub(crate) fn stop_children(run_id: RunId) -> Statement {
    Statement::new(
        "UPDATE queue SET stop = $2 WHERE stop IS NULL AND run_id IN (SELECT id FROM runs WHERE parent_id = $1)",
    )
    .with(run_id.0)
    .with(StopRequest::Cancel.as_str())
}

/// Moves a run among those that wait; the commit has checked that nobody holds it.
pub(crate) fn move_to(run_id: RunId, cell: Seq) -> Statement {
    Statement::new("UPDATE queue SET cell = $2 WHERE run_id = $1").with(run_id.0).with(signed(cell))
}

/// Requests the runs of the room that were queued before this commit to stop.
pub(crate) fn stop_earlier(context: &ChangeContext, stop: StopRequest) -> Statement {
    Statement::new("UPDATE queue SET stop = $3 WHERE room_id = $1 AND queued_seq < $2 AND stop IS NULL")
        .with(context.room.0)
        .with(signed(context.first_seq))
        .with(stop.as_str())
}

pub(crate) fn remove(run_id: RunId) -> Statement {
    Statement::new("DELETE FROM queue WHERE run_id = $1").with(run_id.0)
}
