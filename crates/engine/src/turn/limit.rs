//! The error of a run that reached a limit.

use domain::{
    limits::{Limit, Limits},
    run::RunError,
};

/// The code of a run that a budget has stopped, or has kept from starting.
pub(crate) const BUDGET_USED_UP: &str = "limit_budget";

pub(super) fn error(limit: Limit, limits: &Limits) -> RunError {
    match limit {
        Limit::Turns => {
            RunError::new("limit_turns", format!("stopped after {} model calls, the limit for one run", limits.turns))
        }
        Limit::Wall => RunError::new(
            "limit_wall",
            format!("stopped after {} s, the time limit for one run", limits.wall.as_secs()),
        ),
        Limit::FirstByte => RunError::new(
            "limit_first_byte",
            format!("stopped because the provider had not begun to answer after {} s", limits.first_byte.as_secs()),
        ),
        Limit::Idle => RunError::new(
            "limit_idle",
            format!("stopped because the provider made no progress for {} s", limits.idle.as_secs()),
        ),
        Limit::Tool => RunError::new(
            "limit_tool",
            format!("stopped because a tool made no progress for {} s", limits.tool.as_secs()),
        ),
        Limit::OutputBytes => RunError::new(
            "limit_output_bytes",
            format!("stopped after {} bytes of output, the limit for one run", limits.output_bytes),
        ),
        Limit::Budget => {
            RunError::new(BUDGET_USED_UP, "stopped because a budget is used up; see the budgets of the workspace")
        }
    }
}
