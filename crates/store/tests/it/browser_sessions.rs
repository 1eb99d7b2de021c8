//! Browser sessions: valid until the token is revoked, the session expires, or the user signs out.

use crate::scene::{by, me, name, stranger};
use domain::actor::Credential;
use sqlx::Connection as _;
use store::{Backend, Membership, NewToken};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_browser_session_ends_with_its_token_or_on_sign_out,
        a_browser_session_expires,
        an_operator_session_ends_with_its_key_or_on_sign_out,
        browser_sessions_per_token_are_limited_and_the_newest_stay;
}

async fn a_browser_session_ends_with_its_token_or_on_sign_out(database: TestDatabase) {
    let store = database.open().await;
    let mine = store
        .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("laptop"), [1; 32]))
        .await
        .unwrap();
    let theirs = store
        .create_token(&by(&me()), &Membership::alone(&stranger()), &NewToken::unlimited(name("phone"), [2; 32]))
        .await
        .unwrap();
    let visit = store.create_browser_session(&by(&me()), mine, &[11; 32]).await.unwrap();
    let other = store.create_browser_session(&by(&me()), theirs, &[12; 32]).await.unwrap();
    let expected = Credential::BrowserSession { session: visit, token: Some(mine) };
    let actor = store.actor_for_browser_session(&[11; 32]).await.unwrap().unwrap();
    assert_eq!((actor.workspace, actor.credential), (me(), expected));
    assert_eq!(store.actor_for_browser_session(&[12; 32]).await.unwrap().unwrap().workspace, stranger());
    assert_eq!(store.actor_for_browser_session(&[1; 32]).await.unwrap(), None, "a token is not a cookie");
    assert_eq!(store.actor_for_token(&[11; 32]).await.unwrap(), None, "a cookie is not a token");
    assert!(store.role_of_browser_session(visit).await.unwrap().is_some());

    store.delete_browser_session(&by(&me()), &[11; 32]).await.unwrap();
    store.delete_browser_session(&by(&me()), &[99; 32]).await.unwrap();
    assert_eq!(store.actor_for_browser_session(&[11; 32]).await.unwrap(), None);
    assert!(store.role_of_browser_session(visit).await.unwrap().is_none());
    assert!(store.role_of_browser_session(other).await.unwrap().is_some(), "others stay");
    store.revoke_token(&by(&me()), theirs, None).await.unwrap();
    assert_eq!(store.actor_for_browser_session(&[12; 32]).await.unwrap(), None);
    assert!(store.role_of_browser_session(other).await.unwrap().is_none());
}

async fn an_operator_session_ends_with_its_key_or_on_sign_out(database: TestDatabase) {
    let store = database.open().await;
    let (key, new_key) = ([7; 32], [8; 32]);
    let one = store.create_operator_session(&by(&me()), &key, &[21; 32]).await.unwrap();
    let two = store.create_operator_session(&by(&me()), &key, &[22; 32]).await.unwrap();
    assert_eq!(store.operator_session(&key, &[21; 32]).await.unwrap(), Some(one));
    assert_eq!(store.actor_for_browser_session(&[21; 32]).await.unwrap(), None, "it belongs to no token");
    assert!(store.has_operator_session(&key, two).await.unwrap());
    assert_eq!(store.operator_session(&new_key, &[21; 32]).await.unwrap(), None, "another key ends it");
    assert!(!store.has_operator_session(&new_key, two).await.unwrap());
    store.delete_browser_session(&by(&me()), &[21; 32]).await.unwrap();
    assert_eq!(store.operator_session(&key, &[21; 32]).await.unwrap(), None);
    assert!(store.has_operator_session(&key, two).await.unwrap(), "others stay");
    for n in 100..160 {
        store.create_operator_session(&by(&me()), &key, &[n; 32]).await.unwrap();
    }
    assert!(!store.has_operator_session(&key, two).await.unwrap(), "the newest 50 stay");
    assert!(store.operator_session(&key, &[159; 32]).await.unwrap().is_some());
}

async fn a_browser_session_expires(database: TestDatabase) {
    let store = database.open().await;
    let token = store
        .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("laptop"), [1; 32]))
        .await
        .unwrap();
    let visit = store.create_browser_session(&by(&me()), token, &[11; 32]).await.unwrap();
    let past = "UPDATE visits SET expires_at = 1";
    match database.backend() {
        Backend::Sqlite { file } => {
            let url = format!("sqlite://{}", file.display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            sqlx::query(past).execute(&mut connection).await.unwrap();
        }
        Backend::Postgres { .. } => database.execute_sql(past),
    }
    assert_eq!(store.actor_for_browser_session(&[11; 32]).await.unwrap(), None);
    assert!(store.role_of_browser_session(visit).await.unwrap().is_none());
    store
        .create_browser_session(&by(&me()), token, &[11; 32])
        .await
        .expect("an expired session is deleted, so its hash is free");
}

async fn browser_sessions_per_token_are_limited_and_the_newest_stay(database: TestDatabase) {
    let store = database.open().await;
    let token = store
        .create_token(&by(&me()), &Membership::alone(&me()), &NewToken::unlimited(name("laptop"), [255; 32]))
        .await
        .unwrap();
    for n in 0..60 {
        store.create_browser_session(&by(&me()), token, &[n; 32]).await.unwrap();
    }
    let mut good = 0;
    for n in 0..60 {
        good += usize::from(store.actor_for_browser_session(&[n; 32]).await.unwrap().is_some());
    }
    assert_eq!(good, 50);
    assert!(
        store.actor_for_browser_session(&[59; 32]).await.unwrap().is_some()
            && store.actor_for_browser_session(&[0; 32]).await.unwrap().is_none()
    );
}
