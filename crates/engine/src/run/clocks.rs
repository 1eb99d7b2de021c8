//! The time limits of a turn: total time, first output, silence. Pure: callers pass the time in.

use domain::limits::{Limit, Limits};
use providers::TurnEvent;
use tokio::time::Instant;

pub(super) struct TurnClocks {
    limits: Limits,
    started_at: Instant,
    /// When the last progress was made.
    quiet_since: Instant,
    /// Whether the provider has made any progress yet.
    has_progress: bool,
    /// The turn waits in a queue of this server; that time does not count as silence.
    is_queued: bool,
}

impl TurnClocks {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, started_at: now, quiet_since: now, has_progress: false, is_queued: false }
    }

    pub(super) fn on_event(&mut self, event: &TurnEvent, now: Instant) {
        let was_waiting = std::mem::replace(&mut self.is_queued, matches!(event, TurnEvent::Waiting { .. }));
        let progress = is_progress(event);
        if progress || was_waiting {
            self.quiet_since = now;
        }
        self.has_progress |= progress;
    }

    /// Call when an approval was answered or expired: that time does not count as the provider's silence.
    pub(super) fn on_answer(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// When the turn times out if nothing happens before. `person`: the turn waits for a person.
    pub(super) fn next_deadline(&self, tool: bool, person: bool) -> (Instant, Limit) {
        let wall = (self.started_at + self.limits.wall, Limit::Wall);
        if self.is_queued || person {
            return wall;
        }
        let (silence, limit) = match (self.has_progress, tool) {
            (false, _) => (self.limits.first_byte, Limit::FirstByte),
            (true, true) => (self.limits.tool, Limit::Tool),
            (true, false) => (self.limits.idle, Limit::Idle),
        };
        let quiet = (self.quiet_since + silence, limit);
        if quiet.0 < wall.0 { quiet } else { wall }
    }
}

/// Status events do not count: a provider that only reports its retries would never time out.
fn is_progress(event: &TurnEvent) -> bool {
    match event {
        TurnEvent::ModelCall
        | TurnEvent::Text { .. }
        | TurnEvent::Thinking { .. }
        | TurnEvent::Retract { .. }
        | TurnEvent::ToolUse { .. }
        | TurnEvent::ToolOutput { .. }
        | TurnEvent::FileChanged { .. }
        | TurnEvent::ToolResult { .. }
        | TurnEvent::Delegated { .. }
        | TurnEvent::Approval { .. }
        | TurnEvent::ApprovalWithdrawn { .. }
        | TurnEvent::Usage { .. }
        | TurnEvent::EstimatedUsage { .. } => true,
        TurnEvent::Status { .. }
        | TurnEvent::Waiting { .. }
        | TurnEvent::Session { .. }
        | TurnEvent::Room(_)
        | TurnEvent::Steered { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::TurnClocks;
    use domain::limits::{Limit, Limits};
    use providers::TurnEvent;
    use std::time::Duration;
    use tokio::time::Instant;

    fn limits() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            wall: seconds(1000),
            first_byte: seconds(10),
            idle: seconds(20),
            tool: seconds(300),
            ..Limits::default()
        }
    }

    fn status() -> TurnEvent {
        TurnEvent::Status { status: "retrying".into(), message: "Again".into() }
    }

    fn waiting() -> TurnEvent {
        TurnEvent::Waiting { status: "waiting".into(), message: "In line".into() }
    }

    fn text() -> TurnEvent {
        TurnEvent::Text { delta: "a".into(), item: None }
    }

    /// Feeds events at these times and checks which limit is next; times in seconds from the start.
    fn check(events: &[(u64, TurnEvent)], tool: bool, person: bool, expected: (u64, Limit)) {
        let began = Instant::now();
        let mut clocks = TurnClocks::new(limits(), began);
        for (at, event) in events {
            clocks.on_event(event, began + Duration::from_secs(*at));
        }
        let (at, limit) = clocks.next_deadline(tool, person);
        assert_eq!(((at - began).as_secs(), limit), expected, "{events:?}");
    }

    #[test]
    fn the_silence_limit_depends_on_the_phase() {
        check(&[], false, false, (10, Limit::FirstByte));
        check(&[(5, text())], false, false, (25, Limit::Idle));
        check(&[(5, text())], true, false, (305, Limit::Tool));
        check(&[(5, text())], true, true, (1000, Limit::Wall));
        check(&[(5, text()), (900, text())], true, false, (1000, Limit::Wall));
    }

    #[test]
    fn status_events_are_not_progress() {
        check(&[(5, status())], false, false, (10, Limit::FirstByte));
        check(&[(5, text()), (6, status()), (24, status())], false, false, (25, Limit::Idle));
        check(&[(5, TurnEvent::Session { id: "s".into() })], false, false, (10, Limit::FirstByte));
    }

    #[test]
    fn a_withdrawn_approval_restarts_the_idle_limit() {
        let withdrawn = TurnEvent::ApprovalWithdrawn { id: domain::ids::ApprovalId::generate() };
        check(&[(5, text()), (500, withdrawn)], false, false, (520, Limit::Idle));
    }

    #[test]
    fn while_queued_only_the_wall_limit_applies() {
        check(&[(1, waiting())], false, false, (1000, Limit::Wall));
        check(&[(1, waiting()), (60, waiting())], false, false, (1000, Limit::Wall));
        // Any other event starts the clock.
        check(&[(1, waiting()), (60, status())], false, false, (70, Limit::FirstByte));
        check(&[(1, waiting()), (60, status()), (65, status())], false, false, (70, Limit::FirstByte));
        check(&[(1, text()), (2, waiting()), (60, status())], false, false, (80, Limit::Idle));
    }

    #[test]
    fn time_waiting_for_a_person_is_not_silence() {
        let began = Instant::now();
        let mut clocks = TurnClocks::new(limits(), began);
        clocks.on_event(&text(), began);
        clocks.on_answer(began + Duration::from_secs(500));
        assert_eq!(clocks.next_deadline(false, false), (began + Duration::from_secs(520), Limit::Idle));
    }
}
