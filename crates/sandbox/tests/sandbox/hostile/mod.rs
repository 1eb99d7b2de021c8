//! 35 known ways out of a sandbox, and some more, each tried in every tier and as every kind of server.
//!
//! An attack says itself whether it got out, and the test looks from outside where it can. Where a case must work without a
//! sandbox (`none`), that is checked too: it proves that the test can see an escape.

mod files;
mod kernel;
mod network;
mod processes;
mod resources;

use crate::{
    scene::{Scene, ServerUser},
    shared::{DriveRequest, DriveResult},
};
use sandbox::IsolationTier;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Stopped,
    Escaped,
}
use Verdict::{Escaped, Stopped};

const NATIVE: IsolationTier = IsolationTier::Native;
const LANDLOCK: IsolationTier = IsolationTier::Landlock;
const NONE: IsolationTier = IsolationTier::None;

/// The usual expectation: every tier stops it, and without a sandbox it works.
const SANDBOX_STOPS_IT: &[(IsolationTier, Verdict)] = &[(NATIVE, Stopped), (LANDLOCK, Stopped), (NONE, Escaped)];
/// Also without a sandbox: limits and the clean environment hold there too.
const ALWAYS_STOPPED: &[(IsolationTier, Verdict)] = &[(NATIVE, Stopped), (LANDLOCK, Stopped), (NONE, Stopped)];

fn verdict(scene: &Scene, result: &DriveResult) -> Verdict {
    match result.stdout.split_whitespace().next() {
        Some("STOPPED") => Stopped,
        Some("ESCAPED") => Escaped,
        _ => panic!("{}: the attack gave no verdict: {result:?}", scene.name()),
    }
}

/// One case: an attack of the fixture, its arguments, and changes to the request.
struct HostileCase {
    attack: &'static str,
    arguments: fn(&Scene) -> Vec<String>,
    change: fn(&Scene, &mut DriveRequest),
}

impl HostileCase {
    fn new(attack: &'static str, arguments: fn(&Scene) -> Vec<String>) -> Self {
        Self { attack, arguments, change: |_, _| {} }
    }

    fn changed(self, change: fn(&Scene, &mut DriveRequest)) -> Self {
        Self { change, ..self }
    }

    fn expect(self, expected: &[(IsolationTier, Verdict)]) {
        self.check(expected, |_, _| {});
    }

    /// `look` checks from outside what the attack has done.
    fn check(self, expected: &[(IsolationTier, Verdict)], look: impl Fn(&mut Scene, Verdict)) {
        for (tier, expected) in expected {
            for user in ServerUser::all(*tier) {
                let mut scene = Scene::new(*tier, user);
                let mut request = scene.request(scene.attack(self.attack, &(self.arguments)(&scene)));
                (self.change)(&scene, &mut request);
                let result = scene.drive(&request);
                let found = verdict(&scene, &result);
                assert_eq!(found, *expected, "{} {}: {result:?}", self.attack, scene.name());
                look(&mut scene, found);
            }
        }
    }
}
