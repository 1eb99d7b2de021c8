//! Visits: a browser is signed in until its token is revoked, its time is up, or it leaves.

use crate::scene::{me, name, stranger};
use domain::owner::Principal;
use sqlx::Connection as _;
use store::Backend;
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_visit_ends_with_its_token_or_when_the_person_leaves,
        a_visit_ends_when_its_time_is_up,
        a_token_has_so_many_visits_and_the_newest_stay;
}

async fn a_visit_ends_with_its_token_or_when_the_person_leaves(database: TestDatabase) {
    let store = database.open().await;
    let mine = store.create_token(&me(), &name("laptop"), &[1; 32]).await.unwrap();
    let theirs = store.create_token(&stranger(), &name("phone"), &[2; 32]).await.unwrap();
    let visit = store.begin_visit(mine, &[11; 32]).await.unwrap();
    let other = store.begin_visit(theirs, &[12; 32]).await.unwrap();
    let expected = Principal { owner: me(), token: Some(mine), visit: Some(visit) };
    assert_eq!(store.visitor(&[11; 32]).await.unwrap(), Some(expected));
    assert_eq!(store.visitor(&[12; 32]).await.unwrap().unwrap().owner, stranger());
    assert_eq!(store.visitor(&[1; 32]).await.unwrap(), None, "a token is no cookie");
    assert_eq!(store.principal_of(&[11; 32]).await.unwrap(), None, "a cookie is no token");
    assert!(store.visit_is_good(visit).await.unwrap());

    store.end_visit(&[11; 32]).await.unwrap();
    store.end_visit(&[99; 32]).await.unwrap();
    assert_eq!(store.visitor(&[11; 32]).await.unwrap(), None);
    assert!(!store.visit_is_good(visit).await.unwrap());
    assert!(store.visit_is_good(other).await.unwrap(), "others stay");
    store.revoke_token(theirs).await.unwrap();
    assert_eq!(store.visitor(&[12; 32]).await.unwrap(), None);
    assert!(!store.visit_is_good(other).await.unwrap());
}

async fn a_visit_ends_when_its_time_is_up(database: TestDatabase) {
    let store = database.open().await;
    let token = store.create_token(&me(), &name("laptop"), &[1; 32]).await.unwrap();
    let visit = store.begin_visit(token, &[11; 32]).await.unwrap();
    let past = "UPDATE visits SET expires_at = 1";
    match database.backend() {
        Backend::Sqlite { file } => {
            let url = format!("sqlite://{}", file.display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            sqlx::query(past).execute(&mut connection).await.unwrap();
        }
        Backend::Postgres { .. } => database.administer(past),
    }
    assert_eq!(store.visitor(&[11; 32]).await.unwrap(), None);
    assert!(!store.visit_is_good(visit).await.unwrap());
    store.begin_visit(token, &[11; 32]).await.expect("what is over has made room, its hash included");
}

async fn a_token_has_so_many_visits_and_the_newest_stay(database: TestDatabase) {
    let store = database.open().await;
    let token = store.create_token(&me(), &name("laptop"), &[255; 32]).await.unwrap();
    for n in 0..60 {
        store.begin_visit(token, &[n; 32]).await.unwrap();
    }
    let mut good = 0;
    for n in 0..60 {
        good += usize::from(store.visitor(&[n; 32]).await.unwrap().is_some());
    }
    assert_eq!(good, 50);
    assert!(store.visitor(&[59; 32]).await.unwrap().is_some() && store.visitor(&[0; 32]).await.unwrap().is_none());
}
