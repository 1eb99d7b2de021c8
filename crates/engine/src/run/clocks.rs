//! How long a turn may take, and how long it may be silent. Told the time, so that it can be tested.

use domain::limits::{Limit, Limits};
use providers::TurnEvent;
use tokio::time::Instant;

pub(super) struct Clocks {
    limits: Limits,
    began: Instant,
    /// Since when nothing has moved.
    quiet_since: Instant,
    /// Whether there was any sign of an answer yet.
    progressed: bool,
    /// It stands in a line of our own making.
    waiting: bool,
}

impl Clocks {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, began: now, quiet_since: now, progressed: false, waiting: false }
    }

    pub(super) fn heard(&mut self, event: &TurnEvent, now: Instant) {
        let was_waiting = std::mem::replace(&mut self.waiting, matches!(event, TurnEvent::Waiting { .. }));
        let progress = is_progress(event);
        if progress || was_waiting {
            self.quiet_since = now;
        }
        self.progressed |= progress;
    }

    /// A person has answered, or nobody did in time: none of that time was the provider's.
    pub(super) fn answered(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// When the turn is out of time if nothing happens until then. `person`: somebody else is waited for.
    pub(super) fn next(&self, tool: bool, person: bool) -> (Instant, Limit) {
        let wall = (self.began + self.limits.wall, Limit::Wall);
        if self.waiting || person {
            return wall;
        }
        let (patience, limit) = match (self.progressed, tool) {
            (false, _) => (self.limits.first_byte, Limit::FirstByte),
            (true, true) => (self.limits.tool, Limit::Tool),
            (true, false) => (self.limits.idle, Limit::Idle),
        };
        let quiet = (self.quiet_since + patience, limit);
        if quiet.0 < wall.0 { quiet } else { wall }
    }
}

/// A provider that only reports its own retries would do so for ever.
fn is_progress(event: &TurnEvent) -> bool {
    match event {
        TurnEvent::ModelCall
        | TurnEvent::Text { .. }
        | TurnEvent::Thinking { .. }
        | TurnEvent::Retract { .. }
        | TurnEvent::ToolUse { .. }
        | TurnEvent::ToolOutput { .. }
        | TurnEvent::ToolResult { .. }
        | TurnEvent::Approval { .. }
        | TurnEvent::Withdrawn { .. }
        | TurnEvent::Usage { .. } => true,
        TurnEvent::Status { .. }
        | TurnEvent::Waiting { .. }
        | TurnEvent::Session { .. }
        | TurnEvent::Steered { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Clocks;
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

    /// What is heard when, and what then runs out when: in seconds from the start.
    fn check(heard: &[(u64, TurnEvent)], tool: bool, person: bool, expected: (u64, Limit)) {
        let began = Instant::now();
        let mut clocks = Clocks::new(limits(), began);
        for (at, event) in heard {
            clocks.heard(event, began + Duration::from_secs(*at));
        }
        let (at, limit) = clocks.next(tool, person);
        assert_eq!(((at - began).as_secs(), limit), expected, "{heard:?}");
    }

    #[test]
    fn silence_is_measured_by_what_is_awaited() {
        check(&[], false, false, (10, Limit::FirstByte));
        check(&[(5, text())], false, false, (25, Limit::Idle));
        check(&[(5, text())], true, false, (305, Limit::Tool));
        check(&[(5, text())], true, true, (1000, Limit::Wall));
        check(&[(5, text()), (900, text())], true, false, (1000, Limit::Wall));
    }

    #[test]
    fn a_status_is_no_progress() {
        check(&[(5, status())], false, false, (10, Limit::FirstByte));
        check(&[(5, text()), (6, status()), (24, status())], false, false, (25, Limit::Idle));
        check(&[(5, TurnEvent::Session { id: "s".into() })], false, false, (10, Limit::FirstByte));
    }

    #[test]
    fn after_a_question_is_withdrawn_the_provider_has_its_time_again() {
        let withdrawn = TurnEvent::Withdrawn { id: domain::ids::ApprovalId::generate() };
        check(&[(5, text()), (500, withdrawn)], false, false, (520, Limit::Idle));
    }

    #[test]
    fn in_a_line_of_our_own_only_the_whole_turn_is_timed() {
        check(&[(1, waiting())], false, false, (1000, Limit::Wall));
        check(&[(1, waiting()), (60, waiting())], false, false, (1000, Limit::Wall));
        // The next event, whatever it is, starts the clock.
        check(&[(1, waiting()), (60, status())], false, false, (70, Limit::FirstByte));
        check(&[(1, waiting()), (60, status()), (65, status())], false, false, (70, Limit::FirstByte));
        check(&[(1, text()), (2, waiting()), (60, status())], false, false, (80, Limit::Idle));
    }

    #[test]
    fn a_persons_time_is_not_the_providers() {
        let began = Instant::now();
        let mut clocks = Clocks::new(limits(), began);
        clocks.heard(&text(), began);
        clocks.answered(began + Duration::from_secs(500));
        assert_eq!(clocks.next(false, false), (began + Duration::from_secs(520), Limit::Idle));
    }
}
