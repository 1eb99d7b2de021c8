//! The registry without a sandbox. Commands that run are tested through the API, in `crates/app/tests/it/endpoints`.

use super::{CommandRequest, ProjectCommandError, ProjectCommands};
use crate::sandboxes::NoSandboxes;
use domain::{
    ids::RoomId,
    name::Name,
    owner::Owner,
    project::{ProjectSpace, SpaceKey},
};
use std::sync::Arc;

fn space(workspace: &str) -> ProjectSpace {
    ProjectSpace::scratch(Owner::new(Name::parse(workspace).unwrap()), RoomId::generate(), "/nowhere".into())
}

fn request() -> CommandRequest {
    CommandRequest { line: "true".to_owned(), timeout: None }
}

#[tokio::test]
async fn invariant_28_shares_a_workspace_has_a_limit_of_its_own_over_all_its_projects() {
    let commands = ProjectCommands::new(Arc::new(NoSandboxes), 2);
    let (here, also_here, elsewhere) = (space("one"), space("one"), space("other"));
    let first = commands.reserve(&here, request()).unwrap();
    let second = commands.reserve(&also_here, request()).unwrap();
    assert!(matches!(commands.reserve(&here, request()), Err(ProjectCommandError::TooMany(2))));
    drop(commands.reserve(&elsewhere, request()).unwrap());
    assert_eq!(commands.list(here.key).len(), 1);
    let id = second.id();
    assert!(commands.find(also_here.key, id).is_some());
    assert!(commands.find(here.key, id).is_none(), "another space does not see it");
    drop(first);
    assert!(commands.list(here.key).is_empty(), "a place that was not used is given back");
    // So is that of a command that could not be started.
    for _ in 0..3 {
        let error = commands.start(&here, request()).await.unwrap_err();
        assert_eq!(error.to_string(), "this server has no sandboxes");
    }
    commands.forget(SpaceKey::Room(RoomId::generate()));
    assert!(commands.find(also_here.key, id).is_some());
    commands.forget(also_here.key);
    assert!(commands.find(also_here.key, id).is_none());
}
