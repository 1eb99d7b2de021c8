//! Budgets: how much the runs of a workspace, a user, an agent or a room may cost in a period.

use crate::{
    ids::{AgentId, BudgetId, RoomId, UserId},
    time::Timestamp,
    usage::Cost,
};
use jiff::{
    ToSpan as _,
    civil::{Date, Weekday},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};

/// What a budget counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BudgetScope {
    /// All runs of the workspace.
    Workspace,
    /// Runs that answer this person's messages.
    User(UserId),
    Agent(AgentId),
    Room(RoomId),
}

/// The time after which a budget starts again, in UTC. A run counts in the period in which it was queued.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    Day,
    /// From Monday.
    Week,
    Month,
    /// Never: the budget is for all time.
    Total,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    pub id: BudgetId,
    pub scope: BudgetScope,
    pub period: BudgetPeriod,
    pub limit: Cost,
    pub created_at: Timestamp,
}

/// A budget and how much of it is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetStatus {
    pub budget: Budget,
    pub spent: Cost,
    /// `None` if it never starts again.
    pub resets_at: Option<Timestamp>,
}

/// What a run is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetSubjects<'a> {
    pub user: Option<UserId>,
    /// Its agent, and those of the runs above it.
    pub agents: &'a [AgentId],
    pub rooms: &'a [RoomId],
}

impl BudgetScope {
    /// The stored word; it is never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::User(_) => "user",
            Self::Agent(_) => "agent",
            Self::Room(_) => "room",
        }
    }

    pub fn covers(self, subjects: BudgetSubjects<'_>) -> bool {
        match self {
            Self::Workspace => true,
            Self::User(user) => subjects.user == Some(user),
            Self::Agent(agent) => subjects.agents.contains(&agent),
            Self::Room(room) => subjects.rooms.contains(&room),
        }
    }
}

impl BudgetPeriod {
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Total];

    /// The stored word; it is never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Total => "total",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.as_str() == word)
    }

    /// The start of the period that `now` is in, and the start of the next one. `None` for all time.
    pub fn bounds(self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let today = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?.to_zoned(TimeZone::UTC).date();
        let (start, next) = match self {
            Self::Day => (today, today.tomorrow().ok()?),
            Self::Week => {
                let days = i64::from(today.weekday().since(Weekday::Monday));
                let monday = today.checked_sub(days.days()).ok()?;
                (monday, monday.checked_add(7.days()).ok()?)
            }
            Self::Month => {
                let first = today.first_of_month();
                (first, first.checked_add(1.month()).ok()?)
            }
            Self::Total => return None,
        };
        Some((midnight(start)?, midnight(next)?))
    }
}

impl BudgetStatus {
    /// A budget is used up when nothing is left of it; the run that used the last of it may have cost more.
    pub fn is_used_up(&self) -> bool {
        self.spent >= self.budget.limit
    }
}

fn midnight(date: Date) -> Option<Timestamp> {
    let start = date.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp::from_millis(start.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::{BudgetPeriod, BudgetScope, BudgetSubjects};
    use crate::{
        ids::{AgentId, RoomId, UserId},
        time::Timestamp,
    };

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn periods_begin_at_midnight_utc() {
        let bounds = |period: BudgetPeriod, now: &str| {
            period.bounds(at(now)).map(|(start, next)| (start.to_string(), next.to_string()))
        };
        let expect = |from: &str, to: &str| Some((format!("{from}T00:00:00.000Z"), format!("{to}T00:00:00.000Z")));
        // A Tuesday, a Sunday, a Monday; the end of a month, of a year, of a leap February.
        assert_eq!(bounds(BudgetPeriod::Day, "2026-11-17T23:59:59.999Z"), expect("2026-11-17", "2026-11-18"));
        assert_eq!(bounds(BudgetPeriod::Week, "2026-11-17T10:00:00Z"), expect("2026-11-16", "2026-11-23"));
        assert_eq!(bounds(BudgetPeriod::Week, "2026-11-22T23:00:00Z"), expect("2026-11-16", "2026-11-23"));
        assert_eq!(bounds(BudgetPeriod::Week, "2026-11-16T00:00:00Z"), expect("2026-11-16", "2026-11-23"));
        assert_eq!(bounds(BudgetPeriod::Month, "2026-12-31T12:00:00Z"), expect("2026-12-01", "2027-01-01"));
        assert_eq!(bounds(BudgetPeriod::Month, "2028-02-29T12:00:00Z"), expect("2028-02-01", "2028-03-01"));
        assert_eq!(bounds(BudgetPeriod::Total, "2026-11-17T10:00:00Z"), None);
    }

    #[test]
    fn a_budget_counts_what_it_is_for() {
        let (user, agent, room) = (UserId::generate(), AgentId::generate(), RoomId::generate());
        let subjects = BudgetSubjects { user: Some(user), agents: &[agent], rooms: &[RoomId::generate(), room] };
        for scope in
            [BudgetScope::Workspace, BudgetScope::User(user), BudgetScope::Agent(agent), BudgetScope::Room(room)]
        {
            assert!(scope.covers(subjects), "{scope:?}");
        }
        let other = [
            BudgetScope::User(UserId::generate()),
            BudgetScope::Agent(AgentId::generate()),
            BudgetScope::Room(RoomId::generate()),
        ];
        for scope in other {
            assert!(!scope.covers(subjects), "{scope:?}");
        }
        assert!(!BudgetScope::User(user).covers(BudgetSubjects { user: None, ..subjects }));
    }

    #[test]
    fn a_period_is_read_as_it_is_written() {
        for period in BudgetPeriod::ALL {
            assert_eq!(BudgetPeriod::parse(period.as_str()), Some(period));
            assert_eq!(serde_json::to_value(period).unwrap(), period.as_str());
        }
        assert_eq!(BudgetPeriod::parse("year"), None);
    }
}
