//! Changes of the queue that are committed with events.

use crate::{
    catalog::runs::NewRun,
    commit::{ChangeContext, ClaimOffer, FIRST_FENCE, Statement, StopRequest},
    error::signed,
};
use domain::ids::RunId;

/// Adds a run, held by the worker whose claim was granted.
pub(crate) fn insert(context: &ChangeContext, new: &NewRun<'_>, claim: Option<&ClaimOffer>) -> Statement {
    Statement::new(
        "INSERT INTO queue (run_id, room_id, owner, queued_seq, cell, fence, holder, lease_until) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .with(new.run_id.0)
    .with(context.room.0)
    .with(new.owner.as_str())
    .with(signed(new.queued_seq))
    .with(signed(new.cell))
    .with(if claim.is_some() { signed(FIRST_FENCE) } else { 0 })
    .with(claim.map(|claim| claim.holder.as_str()))
    .with(claim.map(|claim| (context.now + claim.lease).as_millis()))
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
