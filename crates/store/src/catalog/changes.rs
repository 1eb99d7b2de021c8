//! Row changes that are made in the transaction of their events, as statements for both databases.

use crate::{
    StoreError,
    error::signed,
    journal::{ChangeContext, FIRST_FENCE, RowChange, RunEnding, Statement},
};
use domain::{run::RunStatus, usage::Usage};

use super::{messages::StoredMessageBody, rooms::StoredLastMessage};

/// Names of models, tools and sessions come from providers, and PostgreSQL text cannot contain NUL: a NUL would make
/// the commit that ends the run fail.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

pub(crate) fn statements(context: ChangeContext, change: &RowChange) -> Result<Vec<Statement>, StoreError> {
    let room = context.room.0;
    let now = context.now.as_millis();
    let mut statements = Vec::new();
    match change {
        RowChange::StoreIdempotencyKey { owner, attempt, result } => {
            statements.push(
                Statement::new(
                    "INSERT INTO idempotency (owner, key, fingerprint, result, created_at) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner, key) DO NOTHING",
                )
                .with(owner.as_str())
                .with(attempt.key.as_str())
                .with(attempt.fingerprint.as_slice())
                .with(result.as_str())
                .with(now)
                .that_must_change(),
            );
        }
        RowChange::CreateRoom { owner, room: new } => {
            statements.push(
                Statement::new(
                    "INSERT INTO rooms (id, owner, name, policy, project_id, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $6)",
                )
                .with(new.id.0)
                .with(owner.as_str())
                .with(new.name.as_str())
                .with(serde_json::to_string(&new.policy)?)
                .with(new.project_id.map(|id| id.0))
                .with(now),
            );
            statements.push(Statement::new("INSERT INTO journals (room_id, head) VALUES ($1, 0)").with(new.id.0));
        }
        RowChange::Join { agent_id } => {
            statements.push(
                Statement::new(
                    "INSERT INTO participants (room_id, agent_id, ordinal) \
                 SELECT $1, $2, COALESCE(MAX(ordinal), 0) + 1 FROM participants WHERE room_id = $1 \
                 ON CONFLICT (room_id, agent_id) DO NOTHING",
                )
                .with(room)
                .with(agent_id.0),
            );
        }
        RowChange::Leave { agent_id } => {
            statements.push(
                Statement::new("DELETE FROM participants WHERE room_id = $1 AND agent_id = $2")
                    .with(room)
                    .with(agent_id.0),
            );
        }
        RowChange::PutMessage { message, seq } => {
            statements.push(
                Statement::new(
                    "INSERT INTO messages (id, room_id, seq, run_id, body, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
                )
                .with(message.id.0)
                .with(room)
                .with(signed(context.seq(*seq)))
                .with(message.run_id.map(|id| id.0))
                .with(serde_json::to_string(&StoredMessageBody::of(message))?)
                .with(message.created_at.as_millis()),
            );
            let last = StoredLastMessage::of(message, context.seq(*seq)).map(|last| serde_json::to_string(&last));
            statements.push(
                Statement::new(
                    "UPDATE rooms SET updated_at = $2, last_message = COALESCE($3, last_message) WHERE id = $1",
                )
                .with(room)
                .with(now)
                .with(last.transpose()?),
            );
        }
        RowChange::QueueRun { owner, run_id, agent_id, message_id, seq, claim } => {
            let queued_seq = signed(context.seq(*seq));
            let claim = context.granted_claim(claim.as_ref());
            let status = if claim.is_some() { RunStatus::Running } else { RunStatus::Queued };
            statements.push(
                Statement::new(
                    "INSERT INTO runs (id, owner, room_id, agent_id, message_id, status, queued_seq, usage, \
                 created_at, started_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                )
                .with(run_id.0)
                .with(owner.as_str())
                .with(room)
                .with(agent_id.0)
                .with(message_id.0)
                .with(status.as_str())
                .with(queued_seq)
                .with(serde_json::to_string(&Usage::default())?)
                .with(now)
                .with(claim.map(|_| now)),
            );
            statements.push(
                Statement::new(
                    "INSERT INTO queue (run_id, room_id, owner, queued_seq, fence, holder, lease_until) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                )
                .with(run_id.0)
                .with(room)
                .with(owner.as_str())
                .with(queued_seq)
                .with(if claim.is_some() { signed(FIRST_FENCE) } else { 0 })
                .with(claim.map(|claim| claim.holder.as_str()))
                .with(claim.map(|claim| (context.now + claim.lease).as_millis())),
            );
        }
        RowChange::StopEarlierRuns { stop } => {
            statements.push(
                Statement::new("UPDATE queue SET stop = $3 WHERE room_id = $1 AND queued_seq < $2 AND stop IS NULL")
                    .with(room)
                    .with(signed(context.first_seq))
                    .with(stop.as_str()),
            );
        }
        RowChange::RunStatus { run_id, status } => {
            statements.push(
                Statement::new("UPDATE runs SET status = $2, started_at = COALESCE(started_at, $3) WHERE id = $1")
                    .with(run_id.0)
                    .with(status.as_str())
                    .with(now),
            );
        }
        RowChange::EndRun { run_id, ending } => {
            let RunEnding { status, usage, cost, model, duration_ms, error, receipt } = ending;
            statements.push(
                Statement::new(
                    "UPDATE runs SET status = $2, usage = $3, cost = $4, model = $5, duration_ms = $6, \
                 error = $7, receipt = $8, ended_at = $9 WHERE id = $1",
                )
                .with(run_id.0)
                .with(status.as_str())
                .with(serde_json::to_string(usage)?)
                .with(cost.map(|cost| cost.as_nanos()))
                .with(model.as_deref().map(without_nul))
                .with(signed(*duration_ms))
                .with(error.as_ref().map(serde_json::to_string).transpose()?)
                .with(receipt.as_ref().map(serde_json::to_string).transpose()?)
                .with(now),
            );
            statements.push(Statement::new("DELETE FROM queue WHERE run_id = $1").with(run_id.0));
        }
        RowChange::PutSession { agent_id, provider, session } => {
            statements.push(
                Statement::new(
                    "INSERT INTO provider_sessions \
                 (room_id, agent_id, provider, session_id, heard_seq, spoke_seq, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (room_id, agent_id, provider) \
                 DO UPDATE SET session_id = excluded.session_id, heard_seq = excluded.heard_seq, \
                 spoke_seq = excluded.spoke_seq, updated_at = excluded.updated_at",
                )
                .with(room)
                .with(agent_id.0)
                .with(provider.as_str())
                .with(without_nul(&session.id))
                .with(signed(session.heard_seq))
                .with(session.spoke_seq.map(signed))
                .with(now),
            );
        }
        RowChange::RememberTool { agent_id, tool } => {
            statements.push(
                Statement::new(
                    "INSERT INTO room_tools (room_id, agent_id, tool, created_at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (room_id, agent_id, tool) DO NOTHING",
                )
                .with(room)
                .with(agent_id.0)
                .with(without_nul(tool))
                .with(now),
            );
        }
    }
    Ok(statements)
}
