//! Bearer tokens: only their hash is stored (invariant 17).

use crate::scene::{append, by, me, name, room, says, stranger};
use domain::{
    actor::{Actor, Credential},
    ids::{TokenId, UserId},
    permission::Role,
    scope::Scopes,
    time::Timestamp,
};
use sha2::{Digest as _, Sha256};
use store::{Membership, NewToken, StoreError};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_token_is_valid_until_it_is_revoked,
        a_token_acts_as_its_user_with_the_current_role,
        m11_a_token_ends_and_has_scopes,
        m11_a_family_of_tokens_is_revoked_together,
        invariant_17_secrets_stay_out_of_the_database;
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

async fn a_token_is_valid_until_it_is_revoked(database: TestDatabase) {
    let store = database.open().await;
    assert_eq!(store.actor_for_token(&hash("secret")).await.unwrap(), None);
    let id = store
        .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("laptop"), hash("secret")))
        .await
        .unwrap();
    let theirs = store
        .create_token(&by(&me()), &Membership::alone(&stranger()), &NewToken::unlimited(name("phone"), hash("other")))
        .await
        .unwrap();
    let actor = store.actor_for_token(&hash("secret")).await.unwrap().unwrap();
    assert_eq!((actor.workspace, actor.credential), (me(), Credential::Token(id)));
    assert_eq!(store.actor_for_token(&hash("other")).await.unwrap().unwrap().workspace, stranger());
    assert_eq!(store.actor_for_token(&hash("Secret")).await.unwrap(), None);
    let listed = store.tokens().await.unwrap();
    assert_eq!(
        listed.iter().map(|token| (token.id, token.label.as_str())).collect::<Vec<_>>(),
        [(id, "laptop"), (theirs, "phone")]
    );
    assert!(
        store
            .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("again"), hash("secret")))
            .await
            .is_err(),
        "hashes are unique"
    );

    store.revoke_token(&by(&me()), id, None).await.unwrap();
    assert_eq!(store.actor_for_token(&hash("secret")).await.unwrap(), None);
    assert!(matches!(store.revoke_token(&by(&me()), id, None).await, Err(StoreError::NotFound)));
    assert!(matches!(store.revoke_token(&by(&me()), TokenId::generate(), None).await, Err(StoreError::NotFound)));
    assert!(store.tokens().await.unwrap()[0].revoked_at.is_some());
    assert!(store.actor_for_token(&hash("other")).await.unwrap().is_some());
}

async fn a_token_acts_as_its_user_with_the_current_role(database: TestDatabase) {
    let store = database.open().await;
    let token = async |user: &str, role, secret: &str| {
        let member = Membership { workspace: stranger(), user: name(user), role };
        store.create_token(&by(&me()), &member, &NewToken::unlimited(name("a token"), hash(secret))).await.unwrap()
    };
    token("stranger", None, "1").await;
    let first = token("bob", None, "2").await;
    let actor = async |secret: &str| store.actor_for_token(&hash(secret)).await.unwrap().unwrap();
    let (owner, bob) = (actor("1").await, actor("2").await);
    assert_eq!((owner.role, bob.role), (Role::Owner, Role::Member), "the first user of a workspace owns it");
    assert_eq!((bob.workspace, bob.user.unwrap().name), (stranger(), name("bob")));
    assert_ne!(owner.user.as_ref().unwrap().id, UserId::LOCAL);

    token("bob", Some(Role::Viewer), "3").await;
    assert_eq!(store.role_of_token(first).await.unwrap(), Some(Role::Viewer), "a role is the user's, not the token's");
    let (viewer, own) = (actor("2").await, actor("1").await);
    assert_eq!((viewer.role, store.own_tokens(&viewer).await.unwrap().len()), (Role::Viewer, 2));
    assert_eq!(store.own_tokens(&own).await.unwrap().len(), 1);
    let foreign = store.revoke_own_token(&own, first, None).await;
    assert!(matches!(foreign, Err(StoreError::NotFound)), "a token of another user of the workspace: {foreign:?}");
    store.revoke_own_token(&viewer, first, None).await.unwrap();
    assert_eq!(store.role_of_token(first).await.unwrap(), None);

    let local = Membership::alone(&me());
    store.create_token(&by(&me()), &local, &NewToken::unlimited(name("mine"), hash("4"))).await.unwrap();
    let mine = actor("4").await;
    assert_eq!((mine.user_id(), mine.role), (Some(UserId::LOCAL), Role::Owner), "the operator exists from the start");
}

async fn invariant_17_secrets_stay_out_of_the_database(database: TestDatabase) {
    const SECRET: &str = "gr_a-secret-that-must-not-be-found";
    let store = database.open().await;
    let room = room(&store).await;
    store
        .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("laptop"), hash(SECRET)))
        .await
        .unwrap();
    store.actor_for_token(&hash(SECRET)).await.unwrap();
    store.commit(append(room, vec![says("a marker that is found")])).await.unwrap();
    if !database.is_sqlite() {
        return;
    }
    store.shut_down().await;
    let mut found = false;
    for entry in std::fs::read_dir(database.file().parent().unwrap()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!holds(SECRET) && !holds("must-not-be-found"));
        found |= holds("a marker that is found");
    }
    assert!(found, "the search itself works");
}

async fn m11_a_token_ends_and_has_scopes(database: TestDatabase) {
    let store = database.open().await;
    let now = Timestamp::now();
    let create = async |secret: &str, expires_at| {
        let token =
            NewToken { scopes: Scopes::READ_AND_RUN, expires_at, ..NewToken::unlimited(name("x"), hash(secret)) };
        store.create_token(&by(&me()), &Membership::alone(&me()), &token).await.unwrap()
    };
    let ended = create("ended", Some(Timestamp::from_millis(now.as_millis() - 1))).await;
    let valid = create("valid", Some(now + std::time::Duration::from_secs(60))).await;
    assert_eq!(store.actor_for_token(&hash("ended")).await.unwrap(), None);
    assert_eq!(store.role_of_token(ended).await.unwrap(), None);
    let actor = store.actor_for_token(&hash("valid")).await.unwrap().unwrap();
    assert_eq!(actor.scopes, Scopes::READ_AND_RUN);
    let session = store.create_browser_session(&actor, valid, &[41; 32]).await.unwrap();
    let browser = store.actor_for_browser_session(&[41; 32]).await.unwrap().unwrap();
    assert_eq!(browser.scopes, Scopes::READ_AND_RUN, "a browser may do no more than its token");
    assert!(store.role_of_browser_session(session).await.unwrap().is_some());
    store.create_browser_session(&actor, ended, &[42; 32]).await.unwrap();
    assert_eq!(store.actor_for_browser_session(&[42; 32]).await.unwrap(), None, "a session ends with its token");
    let own: Vec<TokenId> = store.own_tokens(&actor).await.unwrap().into_iter().map(|token| token.id).collect();
    assert_eq!(own, [valid]);
}

async fn m11_a_family_of_tokens_is_revoked_together(database: TestDatabase) {
    let store = database.open().await;
    let first = NewToken::unlimited(name("first"), hash("1"));
    let first = store.create_token(&by(&me()), &Membership::alone(&me()), &first).await.unwrap();
    let with = |token| Actor { credential: Credential::Token(token), ..by(&me()) };
    let add = async |parent, secret: &str| {
        store.add_token(&with(parent), &NewToken::unlimited(name("x"), hash(secret)), None).await.unwrap().0
    };
    let child = add(first, "2").await;
    let grandchild = add(child, "3").await;
    let other = store.add_token(&by(&me()), &NewToken::unlimited(name("other"), hash("4")), None).await.unwrap().0;
    store.revoke_own_token(&by(&me()), child, None).await.unwrap();
    let mut valid = Vec::new();
    for token in [first, child, grandchild, other] {
        valid.push(store.role_of_token(token).await.unwrap().is_some());
    }
    assert_eq!(valid, [true, false, false, true]);
    let late = store.add_token(&with(child), &NewToken::unlimited(name("late"), hash("5")), None).await;
    assert!(matches!(late, Err(StoreError::NotFound)), "a revoked token has no further children: {late:?}");
    assert!(matches!(store.revoke_own_token(&by(&stranger()), first, None).await, Err(StoreError::NotFound)));
}
