//! Turns a row change into the statements of its noun.

use crate::{
    catalog::{
        audit, idempotency, messages, projects, provider_sessions, rooms, run_contexts,
        runs::{self, NewRun},
        signals, tapes, tools,
    },
    commit::{ChangeContext, RowChange, Statement},
    error::Result,
    queue,
};

pub(super) fn statements(context: &ChangeContext, change: &RowChange) -> Result<Vec<Statement>> {
    Ok(match change {
        RowChange::CreateProject { owner, project, limit } => vec![projects::create(owner, project, *limit)?],
        RowChange::CreateRoom { owner, room } => rooms::create(context, owner, room)?,
        RowChange::UpdateRoom { owner, name, policy } => {
            vec![rooms::update(context, owner, name.as_ref(), policy.as_ref())?]
        }
        RowChange::PlaceRoom { owner, patch } => vec![rooms::place(context, owner, patch)],
        RowChange::Join { agent_id } => vec![rooms::join(context, *agent_id)],
        RowChange::Leave { agent_id } => vec![rooms::leave(context, *agent_id)],
        RowChange::PutMessage { message, seq } => {
            let seq = context.seq(*seq);
            vec![messages::insert(context, message, seq, None)?, rooms::set_last_message(context, message, seq)?]
        }
        RowChange::PutAnswer { message, ended } => {
            let (seq, ended) = (message.seq, context.seq(*ended));
            vec![messages::insert(context, message, seq, Some(ended))?, rooms::set_last_message(context, message, seq)?]
        }
        RowChange::QueueRun { owner, run_id, agent_id, message_id, place, seq, cell, claim } => {
            let claim = context.granted_claim(claim.as_ref());
            let new = NewRun {
                owner,
                run_id: *run_id,
                agent_id: *agent_id,
                message_id: *message_id,
                place: *place,
                queued_seq: context.seq(*seq),
                cell: context.seq(*cell),
                has_started: claim.is_some(),
            };
            let admitted = place.iter().flat_map(queue::admit_child);
            admitted.chain([runs::insert(context, &new)?, queue::insert(context, &new, claim)]).collect()
        }
        RowChange::MoveRun { run_id, cell } => vec![queue::move_to(*run_id, *cell)],
        RowChange::StopEarlierRuns { stop } => vec![queue::stop_earlier(context, *stop)],
        RowChange::RunStatus { run_id, status } => vec![runs::set_status(context, *run_id, *status)],
        RowChange::MeterRun { run_id, usage, cost } => vec![runs::meter(*run_id, usage, *cost)?],
        RowChange::EndRun { run_id, ending } => {
            vec![
                runs::end(context, *run_id, ending)?,
                queue::remove(*run_id),
                queue::stop_children(*run_id),
                signals::settle_all(context, *run_id),
            ]
        }
        RowChange::StoreSignal { signal } => vec![signals::insert(context, signal)?],
        RowChange::SettleSignal { signal_id, outcome, .. } => vec![signals::settle(context, *signal_id, *outcome)],
        RowChange::PutTape { state, hold, .. } => vec![tapes::put(context, state.as_deref(), *hold)],
        RowChange::PutSession { agent_id, provider, session } => {
            vec![provider_sessions::put(context, *agent_id, provider, session)]
        }
        RowChange::PutRunContext { run_id, context: given } => vec![run_contexts::put(context, *run_id, given)],
        RowChange::RememberTool { agent_id, rule } => vec![tools::remember(context, *agent_id, rule)],
        RowChange::StoreIdempotencyKey { owner, attempt, result } => {
            vec![idempotency::insert(context, owner, attempt, result)]
        }
        RowChange::Audit(entry) => vec![audit::insert(entry, context.now)],
    })
}
