//! SQLite used naively: one transaction per token, with the same durability as Greenroom.

use super::BaselineToken;
use bytes::Bytes;
use domain::{
    event::{ContentDelta, Event, NewEvent},
    ids::{AgentId, MessageId, RoomId, RunId},
    time::Timestamp,
};
use sqlx::{
    ConnectOptions as _, Executor as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use std::{collections::BTreeMap, path::Path};
use tokio::sync::mpsc::Receiver;

const SCHEMA: &str = "
    CREATE TABLE events (
        room_id BLOB NOT NULL, seq INTEGER NOT NULL, id BLOB NOT NULL, kind TEXT NOT NULL, run_id BLOB, agent_id BLOB,
        created_at INTEGER NOT NULL, data TEXT NOT NULL, raw TEXT
    ) STRICT;
    CREATE UNIQUE INDEX events_by_position ON events (room_id, seq);
    CREATE UNIQUE INDEX events_by_id ON events (id);";

pub struct InsertTable {
    connection: SqliteConnection,
    rooms: BTreeMap<usize, RoomIds>,
}

#[derive(Clone, Copy)]
struct RoomIds {
    id: RoomId,
    stream: MessageId,
    run: RunId,
    agent: AgentId,
}

impl InsertTable {
    pub async fn create(path: &Path) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await?;
        connection.execute(SCHEMA).await?;
        Ok(Self { connection, rooms: BTreeMap::new() })
    }

    /// Inserts one row in its own transaction and returns the event once it is synced.
    pub async fn insert(&mut self, token: BaselineToken) -> anyhow::Result<Event> {
        let room = *self.rooms.entry(token.room).or_insert_with(|| RoomIds {
            id: RoomId::generate(),
            stream: MessageId::generate(),
            run: RunId::generate(),
            agent: AgentId::generate(),
        });
        let new = NewEvent::new(ContentDelta { stream_id: room.stream, delta: token.delta(), item: None });
        let event = Event {
            id: new.id,
            room_id: room.id,
            seq: token.number.into(),
            kind: new.kind,
            run_id: Some(room.run),
            agent_id: Some(room.agent),
            data: new.data,
            raw: None,
            created_at: Timestamp::now(),
        };
        sqlx::query("INSERT INTO events VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL)")
            .bind(room.id.0)
            .bind(token.number)
            .bind(event.id.0)
            .bind(event.kind.as_str())
            .bind(room.run.0)
            .bind(room.agent.0)
            .bind(event.created_at.as_millis())
            .bind(&event.data)
            .execute(&mut self.connection)
            .await?;
        Ok(event)
    }

    /// Returns when all senders have been dropped.
    pub async fn write(
        &mut self,
        mut tokens: Receiver<BaselineToken>,
        show: impl Fn(usize, Bytes),
    ) -> anyhow::Result<()> {
        while let Some(token) = tokens.recv().await {
            let event = self.insert(token).await?;
            let mut frame = format!("id: {}\nevent: {}\ndata: ", event.seq, event.kind).into_bytes();
            event.write_json(&mut frame, false);
            frame.extend_from_slice(b"\n\n");
            show(token.room, frame.into());
        }
        Ok(())
    }
}
