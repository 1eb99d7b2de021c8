//! A position in a list that is sorted by time, newest first. What is added meanwhile comes before it, so pages neither
//! repeat nor skip an entry.

use domain::{room::RoomSummary, run::Run, time::Timestamp};
use std::{fmt, str::FromStr};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    pub(super) at: Timestamp,
    pub(super) id: Uuid,
}

impl ListCursor {
    /// The position of this run in the list of runs.
    pub fn of_run(run: &Run) -> Self {
        Self { at: run.created_at, id: run.id.0 }
    }

    /// The position of this room in the list of rooms.
    pub fn of_room(room: &RoomSummary) -> Self {
        Self { at: room.room.updated_at, id: room.room.id.0 }
    }

    /// What a query compares with; all entries come after `None`.
    pub(super) fn values(cursor: Option<Self>) -> (i64, Uuid) {
        cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_millis(), cursor.id))
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_millis(), self.id.simple())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it is not a `next` value from a page of this list")]
pub struct InvalidCursor;

impl FromStr for ListCursor {
    type Err = InvalidCursor;
    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (millis, id) = text.split_once('.').ok_or(InvalidCursor)?;
        let at = Timestamp::from_millis(millis.parse().map_err(|_| InvalidCursor)?);
        Ok(Self { at, id: id.parse().map_err(|_| InvalidCursor)? })
    }
}
