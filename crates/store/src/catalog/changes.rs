//! Row changes that are made in the transaction of the events they go with. Written once, expanded for both engines.

use crate::{
    Error,
    error::signed,
    journal::{Change, Ending, FIRST_FENCE},
};
use domain::{run::RunStatus, usage::Usage};

use super::{messages::StoredBody, rooms::StoredLast};

/// What a provider calls its models, tools and sessions is not ours, and PostgreSQL's text holds no NUL: left in, it would keep
/// the run from ever ending.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

macro_rules! changes_on {
    ($name:ident, $connection:ty) => {
        pub(crate) async fn $name(
            connection: &mut $connection,
            context: crate::journal::Context,
            change: &Change,
        ) -> Result<(), Error> {
            let room = context.room.0;
            let now = context.now.as_millis();
            match change {
                Change::Remember { owner, attempt, result } => {
                    let stored = sqlx::query(
                        "INSERT INTO idempotency (owner, key, fingerprint, result, created_at) \
                         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner, key) DO NOTHING",
                    )
                    .bind(owner.as_str())
                    .bind(attempt.key.as_str())
                    .bind(attempt.fingerprint.as_slice())
                    .bind(result.as_str())
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                    if stored.rows_affected() == 0 {
                        return Err(Error::KeyUsed);
                    }
                }
                Change::CreateRoom { owner, room: new } => {
                    sqlx::query(
                        "INSERT INTO rooms (id, owner, name, policy, project_id, created_at, updated_at) \
                         VALUES ($1, $2, $3, $4, $5, $6, $6)",
                    )
                    .bind(new.id.0)
                    .bind(owner.as_str())
                    .bind(new.name.as_str())
                    .bind(serde_json::to_string(&new.policy)?)
                    .bind(new.project_id.map(|id| id.0))
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                    sqlx::query("INSERT INTO journals (room_id, head) VALUES ($1, 0)")
                        .bind(new.id.0)
                        .execute(&mut *connection)
                        .await?;
                }
                Change::Join { agent_id } => {
                    sqlx::query(
                        "INSERT INTO participants (room_id, agent_id, ordinal) \
                         SELECT $1, $2, COALESCE(MAX(ordinal), 0) + 1 FROM participants WHERE room_id = $1 \
                         ON CONFLICT (room_id, agent_id) DO NOTHING",
                    )
                    .bind(room)
                    .bind(agent_id.0)
                    .execute(&mut *connection)
                    .await?;
                }
                Change::Leave { agent_id } => {
                    sqlx::query("DELETE FROM participants WHERE room_id = $1 AND agent_id = $2")
                        .bind(room)
                        .bind(agent_id.0)
                        .execute(&mut *connection)
                        .await?;
                }
                Change::PutMessage { message, seq } => {
                    sqlx::query(
                        "INSERT INTO messages (id, room_id, seq, run_id, body, created_at) \
                         VALUES ($1, $2, $3, $4, $5, $6)",
                    )
                    .bind(message.id.0)
                    .bind(room)
                    .bind(signed(context.seq(*seq)))
                    .bind(message.run_id.map(|id| id.0))
                    .bind(serde_json::to_string(&StoredBody::of(message))?)
                    .bind(message.created_at.as_millis())
                    .execute(&mut *connection)
                    .await?;
                    let last = StoredLast::of(message, context.seq(*seq)).map(|last| serde_json::to_string(&last));
                    sqlx::query(
                        "UPDATE rooms SET updated_at = $2, last_message = COALESCE($3, last_message) WHERE id = $1",
                    )
                    .bind(room)
                    .bind(now)
                    .bind(last.transpose()?)
                    .execute(&mut *connection)
                    .await?;
                }
                Change::QueueRun { owner, run_id, agent_id, message_id, seq, claim } => {
                    let queued_seq = signed(context.seq(*seq));
                    sqlx::query(
                        "INSERT INTO runs (id, owner, room_id, agent_id, message_id, status, queued_seq, usage, \
                         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                    )
                    .bind(run_id.0)
                    .bind(owner.as_str())
                    .bind(room)
                    .bind(agent_id.0)
                    .bind(message_id.0)
                    .bind(RunStatus::Queued.as_str())
                    .bind(queued_seq)
                    .bind(serde_json::to_string(&Usage::default())?)
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                    let claim = context.granted(claim.as_ref());
                    sqlx::query(
                        "INSERT INTO queue (run_id, room_id, owner, queued_seq, fence, holder, lease_until) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    )
                    .bind(run_id.0)
                    .bind(room)
                    .bind(owner.as_str())
                    .bind(queued_seq)
                    .bind(if claim.is_some() { signed(FIRST_FENCE) } else { 0 })
                    .bind(claim.map(|claim| claim.holder.as_str()))
                    .bind(claim.map(|claim| (context.now + claim.lease).as_millis()))
                    .execute(&mut *connection)
                    .await?;
                }
                Change::StopEarlier { stop } => {
                    sqlx::query("UPDATE queue SET stop = $3 WHERE room_id = $1 AND queued_seq < $2 AND stop IS NULL")
                        .bind(room)
                        .bind(signed(context.first))
                        .bind(stop.as_str())
                        .execute(&mut *connection)
                        .await?;
                }
                Change::RunStatus { run_id, status } => {
                    sqlx::query("UPDATE runs SET status = $2, started_at = COALESCE(started_at, $3) WHERE id = $1")
                        .bind(run_id.0)
                        .bind(status.as_str())
                        .bind(now)
                        .execute(&mut *connection)
                        .await?;
                }
                Change::EndRun { run_id, ending } => {
                    let Ending { status, usage, cost, model, duration_ms, error, receipt } = ending;
                    sqlx::query(
                        "UPDATE runs SET status = $2, usage = $3, cost = $4, model = $5, duration_ms = $6, \
                         error = $7, receipt = $8, ended_at = $9 WHERE id = $1",
                    )
                    .bind(run_id.0)
                    .bind(status.as_str())
                    .bind(serde_json::to_string(usage)?)
                    .bind(cost.map(|cost| cost.as_nanos()))
                    .bind(model.as_deref().map(without_nul))
                    .bind(signed(*duration_ms))
                    .bind(error.as_ref().map(serde_json::to_string).transpose()?)
                    .bind(receipt.as_ref().map(serde_json::to_string).transpose()?)
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                    sqlx::query("DELETE FROM queue WHERE run_id = $1").bind(run_id.0).execute(&mut *connection).await?;
                }
                Change::PutSession { agent_id, provider, session } => {
                    sqlx::query(
                        "INSERT INTO provider_sessions \
                         (room_id, agent_id, provider, session_id, heard_seq, spoke_seq, updated_at) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (room_id, agent_id, provider) \
                         DO UPDATE SET session_id = excluded.session_id, heard_seq = excluded.heard_seq, \
                         spoke_seq = excluded.spoke_seq, updated_at = excluded.updated_at",
                    )
                    .bind(room)
                    .bind(agent_id.0)
                    .bind(provider.as_str())
                    .bind(without_nul(&session.id))
                    .bind(signed(session.heard_seq))
                    .bind(session.spoke_seq.map(signed))
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                }
                Change::RememberTool { agent_id, tool } => {
                    sqlx::query(
                        "INSERT INTO room_tools (room_id, agent_id, tool, created_at) VALUES ($1, $2, $3, $4) \
                         ON CONFLICT (room_id, agent_id, tool) DO NOTHING",
                    )
                    .bind(room)
                    .bind(agent_id.0)
                    .bind(without_nul(tool))
                    .bind(now)
                    .execute(&mut *connection)
                    .await?;
                }
            }
            Ok(())
        }
    };
}

changes_on!(sqlite, sqlx::SqliteConnection);
changes_on!(postgres, sqlx::PgConnection);
