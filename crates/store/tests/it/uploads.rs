//! Uploads: per owner, with a limit.

use crate::scene::{attempt, by, me, name, stranger};
use domain::{
    ids::UploadId,
    time::Timestamp,
    upload::{MAX_OWNER_BYTES, Upload},
};
use store::StoreError;
use testkit::database::TestDatabase;

contract! {
    one thread: an_upload_belongs_to_its_owner, uploads_are_limited_per_owner, several_uploads_are_added_together;
}

fn upload(bytes: u64) -> Upload {
    let (id, created_at) = (UploadId::generate(), Timestamp::from_millis(1_763_200_000_250));
    Upload { id, name: name("Bericht 🎭.pdf"), media_type: "application/pdf".into(), bytes, created_at }
}

async fn an_upload_belongs_to_its_owner(database: TestDatabase) {
    let store = database.open().await;
    let file = upload(7);
    store.add_uploads(&by(&me()), std::slice::from_ref(&file), Some(&attempt("key", 1))).await.unwrap();
    assert_eq!(store.upload(&me(), file.id).await.unwrap(), file);
    assert!(matches!(store.upload(&stranger(), file.id).await, Err(StoreError::NotFound)));
    assert!(matches!(store.delete_upload(&by(&stranger()), file.id, None).await, Err(StoreError::NotFound)));
    let again = upload(7);
    assert!(matches!(
        store.add_uploads(&by(&me()), std::slice::from_ref(&again), Some(&attempt("key", 1))).await,
        Err(StoreError::KeyUsed)
    ));
    assert!(matches!(store.upload(&me(), again.id).await, Err(StoreError::NotFound)), "nothing was stored");
    store.delete_upload(&by(&me()), file.id, None).await.unwrap();
    assert!(matches!(store.upload(&me(), file.id).await, Err(StoreError::NotFound)));
}

async fn uploads_are_limited_per_owner(database: TestDatabase) {
    let store = database.open().await;
    let large = upload(MAX_OWNER_BYTES);
    store.add_uploads(&by(&me()), std::slice::from_ref(&large), None).await.unwrap();
    let more = upload(1);
    assert!(matches!(
        store.add_uploads(&by(&me()), std::slice::from_ref(&more), None).await,
        Err(StoreError::LimitReached(_))
    ));
    assert!(matches!(store.upload(&me(), more.id).await, Err(StoreError::NotFound)), "it was rolled back");
    store.add_uploads(&by(&stranger()), &[upload(1)], None).await.expect("the limit is per owner");
    store.delete_upload(&by(&me()), large.id, None).await.unwrap();
    store.add_uploads(&by(&me()), std::slice::from_ref(&more), None).await.unwrap();
}

async fn several_uploads_are_added_together(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (upload(1), upload(2));
    let attempt = attempt("key", 1);
    store.add_uploads(&by(&me()), &[one.clone(), two.clone()], Some(&attempt)).await.unwrap();
    assert_eq!(store.uploads(&me(), None, 10).await.unwrap(), [two.clone(), one.clone()]);
    let earlier = store.earlier_result(&me(), &attempt).await.unwrap().unwrap();
    assert_eq!(earlier.result, format!("{},{}", one.id, two.id));
    let refused = [upload(1), upload(MAX_OWNER_BYTES)];
    assert!(matches!(store.add_uploads(&by(&me()), &refused, None).await, Err(StoreError::LimitReached(_))));
    assert_eq!(store.uploads(&me(), None, 10).await.unwrap().len(), 2, "none of them was added");
}
