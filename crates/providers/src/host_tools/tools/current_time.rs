//! `current_time`: the date and time, which a model does not know.

use crate::host_tools::{HostCall, HostTool, HostToolDefinition, HostToolFuture, HostToolOutcome};
use domain::time::Timestamp;

#[derive(Debug)]
pub struct CurrentTime;

impl HostTool for CurrentTime {
    fn definition(&self) -> HostToolDefinition {
        let description = "The current date and time in UTC.";
        let definition = HostToolDefinition::new("current_time", description, HostToolDefinition::no_arguments());
        HostToolDefinition { is_read_only: true, ..definition }
    }

    fn call(&self, _: HostCall) -> HostToolFuture<'_> {
        Box::pin(async { HostToolOutcome::success(Timestamp::now().to_string()) })
    }
}
