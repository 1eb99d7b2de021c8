//! The trial run, and what is said when it fails.

use crate::process_list::DEADLINE;
use sandbox::{
    Enforcement, IsolationTier, LocalDriver, SandboxDriver, SandboxError, SandboxPolicy, SandboxSetting, choose,
};
use std::{fs, sync::Arc};

fn driver(tier: IsolationTier, scratch: &std::path::Path) -> LocalDriver {
    LocalDriver::new(tier, env!("CARGO_BIN_EXE_sandbox-fixture"), scratch)
}

#[tokio::test]
async fn auto_finds_the_native_tier_here() {
    let scratch = tempfile::tempdir().unwrap();
    let tiers = [IsolationTier::None, IsolationTier::Landlock, IsolationTier::Native];
    let drivers = tiers.map(|tier| Arc::new(driver(tier, scratch.path())) as Arc<dyn SandboxDriver>);
    let chosen = choose(SandboxSetting::Auto, &drivers).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let isolation = chosen.isolation;
    assert_eq!(
        (isolation.tier, isolation.file, isolation.network),
        (IsolationTier::Native, Enforcement::Full, Enforcement::Full)
    );
    assert_eq!(isolation.pids, Enforcement::Full);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "the trial leaves nothing behind");
}

#[tokio::test]
async fn every_tier_can_be_tried() {
    let scratch = tempfile::tempdir().unwrap();
    for tier in [IsolationTier::Native, IsolationTier::Landlock, IsolationTier::None] {
        let isolation = driver(tier, scratch.path()).probe().await.unwrap_or_else(|error| panic!("{tier:?}: {error}"));
        assert_eq!(isolation.tier, tier);
    }
}

#[tokio::test]
async fn root_without_user_namespaces_still_has_a_sandbox() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let isolation = driver(IsolationTier::Native, scratch.path()).without_user_namespaces().probe().await.unwrap();
    assert_eq!((isolation.file, isolation.pids), (Enforcement::Full, Enforcement::Partial));
}

#[tokio::test]
async fn a_program_that_is_no_helper_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    for program in ["/bin/true", "/nonexistent"] {
        let driver = LocalDriver::new(IsolationTier::Native, program, scratch.path());
        let error = tokio::time::timeout(DEADLINE, driver.probe()).await.unwrap().unwrap_err();
        assert!(matches!(error, SandboxError::Helper(_)), "{error}");
    }
}

#[tokio::test]
async fn a_failed_set_up_says_at_what() {
    let scratch = tempfile::tempdir().unwrap();
    let policy = SandboxPolicy::new(scratch.path().join("missing"));
    let error = driver(IsolationTier::Native, scratch.path()).start_sandbox(policy).await.map(drop).unwrap_err();
    assert!(matches!(&error, SandboxError::Setup { advice: None, .. }), "{error}");
    assert!(error.to_string().contains("missing: No such file"), "{error}");
}
