//! Skills: immutable versions, shared files, and an append-only training history.

use crate::scene::{attempt, by, me, room, stranger};
use domain::{
    ids::{AgentId, RunId},
    skill::{FilePath, ProposalStatus, Remarks, RoundKind, Score, SkillFile, SkillName, SkillSpec},
};
use store::{NewProposal, NewRound, SkillChange, SkillFilesChange, SkillUse, Store, StoreError};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_skill_reads_back_as_created_and_each_change_is_a_version,
        skill_names_are_unique_per_owner_and_invisible_to_others,
        the_second_change_of_one_version_conflicts,
        versions_share_files_and_old_versions_are_deleted,
        files_over_the_limit_are_rejected_and_not_stored,
        rounds_are_appended_and_update_the_experience,
        a_proposal_is_decided_once,
        a_repeated_request_with_a_key_has_no_effect;
}

fn name(text: &str) -> SkillName {
    text.parse().unwrap()
}

fn path(text: &str) -> FilePath {
    text.parse().unwrap()
}

fn spec(text: &str, body: &str) -> SkillSpec {
    SkillSpec::new(name(text), "What it does.", body)
}

fn file(at: &str, content: &[u8]) -> SkillFile {
    SkillFile { path: path(at), executable: false, content: content.to_vec() }
}

async fn created_skill(store: &Store, skill: &str, files: Vec<SkillFile>) -> domain::skill::Skill {
    store.create_skill(&by(&me()), &spec(skill, "one"), SkillFilesChange::All(files), None, None).await.unwrap()
}

fn change(base: u32, body: &str, files: SkillFilesChange) -> SkillChange {
    SkillChange { base_version: base, spec: spec("a", body), files, note: Some(body.to_owned()) }
}

async fn a_skill_reads_back_as_created_and_each_change_is_a_version(database: TestDatabase) {
    let store = database.open().await;
    let mut full = spec("a", "body {{x}} 🎭\r\n");
    full.metadata.insert("k".into(), "v\u{0}".into());
    full.mcp_servers.insert("s".into(), serde_json::json!({"command": "c", "args": ["1"]}));
    let files = vec![file("a.md", b"\x00\xff"), file("b/c.sh", b"")];
    let first =
        store.create_skill(&by(&me()), &full, SkillFilesChange::All(files.clone()), Some("why"), None).await.unwrap();
    assert_eq!((&first.spec, first.version, first.files.len()), (&full, 1, 2));
    assert_eq!(store.skill_files(&me(), &name("a"), 1).await.unwrap(), files);
    let second =
        store.change_skill(&by(&me()), &name("a"), change(1, "two", SkillFilesChange::SameAs(1)), None).await.unwrap();
    assert_eq!((second.version, second.spec.body.as_str(), second.files), (2, "two", first.files.clone()));
    let versions = store.skill_versions(&me(), &name("a")).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2, 1]);
    let old = store.skill_version(&me(), &name("a"), 1).await.unwrap();
    assert_eq!((old.spec, old.note.as_deref(), old.files), (full, Some("why"), first.files));
    assert!(matches!(store.skill_version(&me(), &name("a"), 3).await, Err(StoreError::NotFound)));
}

async fn skill_names_are_unique_per_owner_and_invisible_to_others(database: TestDatabase) {
    let store = database.open().await;
    let mine = created_skill(&store, "a", vec![file("f", b"x")]).await;
    let again = store.create_skill(&by(&me()), &spec("a", "b"), SkillFilesChange::All(Vec::new()), None, None).await;
    assert!(matches!(again, Err(StoreError::SkillNameTaken(taken)) if taken == "a"));
    let other = stranger();
    assert!(store.skills(&other).await.unwrap().is_empty());
    let a = name("a");
    assert!(matches!(store.skill(&other, &a).await, Err(StoreError::NotFound)));
    assert!(matches!(store.skill_versions(&other, &a).await, Err(StoreError::NotFound)));
    assert!(matches!(store.skill_version(&other, &a, 1).await, Err(StoreError::NotFound)));
    assert!(store.skill_files(&other, &a, 1).await.unwrap().is_empty());
    assert!(matches!(store.skill_file(&other, &a, 1, &path("f")).await, Err(StoreError::NotFound)));
    assert!(matches!(store.delete_skill(&by(&other), &a, None).await, Err(StoreError::NotFound)));
    let changed = store.change_skill(&by(&other), &a, change(1, "x", SkillFilesChange::SameAs(1)), None).await;
    assert!(matches!(changed, Err(StoreError::NotFound)));
    let rating =
        NewRound { score: 5.try_into().unwrap(), remarks: Remarks::default(), room_id: None, message_id: None };
    assert!(matches!(store.rate_skill(&by(&other), &a, rating, None).await, Err(StoreError::NotFound)));
    let one = SkillUse { skill: mine.id, version: 1, invoked: true };
    store.record_skill_uses(&other, RunId::generate(), &[one]).await.unwrap();
    assert!(store.skill_stats(&me()).await.unwrap().is_empty());
    store.create_skill(&by(&other), &spec("a", "theirs"), SkillFilesChange::All(Vec::new()), None, None).await.unwrap();
    assert_eq!(store.skills(&me()).await.unwrap(), [mine]);
    store.delete_skill(&by(&me()), &a, None).await.unwrap();
    assert!(matches!(store.delete_skill(&by(&me()), &a, None).await, Err(StoreError::NotFound)));
    assert_eq!(store.skill(&other, &a).await.unwrap().spec.body, "theirs");
    created_skill(&store, "a", Vec::new()).await;
}

async fn the_second_change_of_one_version_conflicts(database: TestDatabase) {
    let store = database.open().await;
    created_skill(&store, "a", Vec::new()).await;
    let a = name("a");
    let owner = me();
    let actor = by(&owner);
    let both = tokio::join!(
        store.change_skill(&actor, &a, change(1, "left", SkillFilesChange::SameAs(1)), None),
        store.change_skill(&actor, &a, change(1, "right", SkillFilesChange::SameAs(1)), None),
    );
    let conflicts = [&both.0, &both.1].into_iter().filter(|done| matches!(done, Err(StoreError::SkillChanged))).count();
    assert_eq!((conflicts, store.skill(&me(), &a).await.unwrap().version), (1, 2), "{both:?}");
}

async fn versions_share_files_and_old_versions_are_deleted(database: TestDatabase) {
    let store = database.open().await;
    created_skill(&store, "a", vec![file("old", b"old"), file("kept", b"kept")]).await;
    let a = name("a");
    let at = |version: u32, change_of: SkillFilesChange| change(version, "x", change_of);
    store.change_skill(&by(&me()), &a, at(1, SkillFilesChange::Put(1, file("kept", b"new"))), None).await.unwrap();
    store.change_skill(&by(&me()), &a, at(2, SkillFilesChange::Remove(2, path("old"))), None).await.unwrap();
    assert_eq!(store.skill_files(&me(), &a, 3).await.unwrap(), [file("kept", b"new")]);
    assert_eq!(store.skill_files(&me(), &a, 1).await.unwrap(), [file("kept", b"kept"), file("old", b"old")]);
    for version in 3..203 {
        store.change_skill(&by(&me()), &a, at(version, SkillFilesChange::SameAs(version)), None).await.unwrap();
    }
    let versions = store.skill_versions(&me(), &a).await.unwrap();
    assert_eq!((versions.len(), versions.last().unwrap().version), (200, 4), "the newest versions are kept");
    assert!(store.skill_files(&me(), &a, 1).await.unwrap().is_empty());
    assert_eq!(store.skill_files(&me(), &a, 203).await.unwrap(), [file("kept", b"new")]);
}

async fn files_over_the_limit_are_rejected_and_not_stored(database: TestDatabase) {
    let store = database.open().await;
    let files = |count: usize, bytes: usize| -> Vec<SkillFile> {
        (0..count).map(|n| file(&format!("f{n}"), &vec![u8::try_from(n % 250).unwrap(); bytes])).collect()
    };
    for (count, bytes) in [(201, 1), (1, 4 * 1024 * 1024 + 1), (3, 3 * 1024 * 1024)] {
        let refused = store
            .create_skill(&by(&me()), &spec("a", "b"), SkillFilesChange::All(files(count, bytes)), None, None)
            .await;
        assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{count} {bytes}");
    }
    assert!(store.skills(&me()).await.unwrap().is_empty());
}

async fn rounds_are_appended_and_update_the_experience(database: TestDatabase) {
    let store = database.open().await;
    created_skill(&store, "a", Vec::new()).await;
    let (a, room) = (name("a"), room(&store).await);
    let agent = AgentId::generate();
    assert!(!store.run_start_state(room, agent, "p").await.unwrap().is_training_room);
    store.add_training_room(&by(&me()), &a, room, agent).await.unwrap();
    assert!(store.run_start_state(room, agent, "p").await.unwrap().is_training_room);
    assert_eq!(store.skill_trained_in(&me(), room).await.unwrap(), Some(a.clone()));
    assert_eq!(store.skill_trained_in(&stranger(), room).await.unwrap(), None);
    assert_eq!(store.training_rooms(&me(), &a).await.unwrap().len(), 1);
    for (score, experience) in [(5, 17), (5, 29), (1, 26)] {
        let score = Score::try_from(score).unwrap();
        let remarks = Remarks { comment: Some("ok".into()), issues: vec!["slow".into()], improvements: Vec::new() };
        let round = NewRound { score, remarks, room_id: Some(room), message_id: None };
        let round = store.rate_skill(&by(&me()), &a, round, None).await.unwrap();
        assert_eq!((round.experience, round.kind), (Some(experience), RoundKind::Rating));
        assert_eq!(store.training_round(&me(), &a, round.id).await.unwrap(), round);
    }
    let rounds = store.training_rounds(&me(), &a, 10).await.unwrap();
    assert_eq!(rounds.iter().map(|round| round.experience.unwrap()).collect::<Vec<_>>(), [26, 29, 17]);
    assert_eq!(store.skill(&me(), &a).await.unwrap().experience, Some(26));
    assert!(store.training_rounds(&stranger(), &a, 10).await.unwrap().is_empty());
}

async fn a_proposal_is_decided_once(database: TestDatabase) {
    let store = database.open().await;
    created_skill(&store, "a", vec![file("f", b"x")]).await;
    let a = name("a");
    let new = |base_version| NewProposal { base_version, body: "better".into(), note: None, message_id: None };
    let (first, second) = (
        store.create_proposal(&by(&me()), &a, new(1), None).await.unwrap(),
        store.create_proposal(&by(&me()), &a, new(1), None).await.unwrap(),
    );
    let accepted = store.accept_proposal(&by(&me()), &a, &first, &spec("a", "better"), None).await.unwrap();
    assert_eq!((accepted.status, accepted.accepted_version), (ProposalStatus::Accepted, Some(2)));
    let skill = store.skill(&me(), &a).await.unwrap();
    assert_eq!((skill.version, skill.spec.body.as_str(), skill.files.len()), (2, "better", 1));
    let stale = store.accept_proposal(&by(&me()), &a, &second, &spec("a", "better"), None).await;
    assert!(matches!(stale, Err(StoreError::SkillChanged)), "the proposal is based on an old version");
    let dropped = store.drop_proposal(&by(&me()), &a, &second, Remarks::default(), None).await.unwrap();
    assert_eq!(dropped.status, ProposalStatus::Dropped);
    let again = store.drop_proposal(&by(&me()), &a, &second, Remarks::default(), None).await;
    assert!(matches!(again, Err(StoreError::SkillChanged)));
    let kinds: Vec<RoundKind> =
        store.training_rounds(&me(), &a, 10).await.unwrap().iter().map(|round| round.kind).collect();
    assert_eq!(kinds, [RoundKind::Dropped, RoundKind::Accepted]);
    assert!(matches!(store.proposal(&stranger(), &a, first.id).await, Err(StoreError::NotFound)));
}

async fn a_repeated_request_with_a_key_has_no_effect(database: TestDatabase) {
    let store = database.open().await;
    let key = attempt("k", 1);
    let files = || SkillFilesChange::All(Vec::new());
    store.create_skill(&by(&me()), &spec("a", "b"), files(), None, Some(&key)).await.unwrap();
    let again = store.create_skill(&by(&me()), &spec("b", "b"), files(), None, Some(&key)).await;
    assert!(matches!(again, Err(StoreError::KeyUsed)));
    assert_eq!(store.earlier_result(&me(), &key).await.unwrap().unwrap().result, "a");
    let failed = store
        .change_skill(&by(&me()), &name("a"), change(7, "x", SkillFilesChange::SameAs(7)), Some(&attempt("k2", 1)))
        .await;
    assert!(matches!(failed, Err(StoreError::SkillChanged)));
    assert!(
        store.earlier_result(&me(), &attempt("k2", 1)).await.unwrap().is_none(),
        "a failed request does not use its key"
    );
}
