//! The processes that a program has left: their parent has ended, and the parent of the program has adopted them.

use super::{
    ProcessSet,
    process_table::{self, ProcessEntry},
};
use std::fs;

const ROUNDS: usize = 3;

/// Kills the children of `adopter` but for the program, and their descendants. Children that the program still has, such as
/// MCP servers, stay. Returns the killed ones.
pub fn end_orphans(adopter: i32, program: i32) -> ProcessSet {
    let mut ended = ProcessSet::default();
    // Repeated, because a process may start another one before it is killed. A process that never stops doing so is killed
    // with the program.
    for _ in 0..ROUNDS {
        let adopted: Vec<i32> = children(adopter).into_iter().filter(|id| *id != program).collect();
        if adopted.is_empty() {
            break;
        }
        let strays = process_table::descendants(&process_table::all(), &adopted);
        let adopted = adopted.iter().filter_map(|id| ProcessEntry::read(*id)).filter(|entry| entry.parent == adopter);
        for stray in adopted.chain(strays).filter(|entry| !entry.has_ended) {
            if let Err(error) = stray.kill() {
                tracing::debug!(%error, process = stray.id, "could not kill an orphaned process");
            }
            ended.insert(&stray);
        }
    }
    ended
}

/// Usually returns only the program. Must be cheap: a turn waits for it.
fn children(of: i32) -> Vec<i32> {
    match fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(ids) => ids.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect(),
        // This kernel was built without that file.
        Err(_) => process_table::all().into_iter().filter(|entry| entry.parent == of).map(|entry| entry.id).collect(),
    }
}

/// A program whose parent adopts what it leaves.
#[derive(Clone, Copy, Debug)]
pub struct AdoptedTree {
    program: i32,
    adopter: ProcessEntry,
}

impl AdoptedTree {
    /// `None` if the program has already ended.
    pub fn of(program: i32) -> Option<Self> {
        let adopter = ProcessEntry::read(ProcessEntry::read(program)?.parent)?;
        Some(Self { program, adopter })
    }

    /// The id of the adopter, unless it has ended and the system has given it to another process.
    fn adopter(&self) -> Option<i32> {
        ProcessEntry::read(self.adopter.id).filter(|now| now.is_same_process(&self.adopter)).map(|now| now.id)
    }

    /// Counts the program and all its descendants.
    pub fn count(&self) -> usize {
        let descendants = |adopter| process_table::descendants(&process_table::all(), &[adopter]);
        let living = |found: Vec<ProcessEntry>| found.iter().filter(|entry| !entry.has_ended).count();
        self.adopter().map(descendants).map_or(0, living)
    }

    pub fn end_orphans(&self) -> ProcessSet {
        self.adopter().map(|adopter| end_orphans(adopter, self.program)).unwrap_or_default()
    }
}
