//! The description of the API, as a snapshot: a change in it is seen in review, and clients are made from it.

use super::scene::get;
use testkit::{database::TestDatabase, server::TestServer};

#[tokio::test]
async fn the_description_of_the_api() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let description = get(server.api(), "/openapi.json").await.is(200);
    insta::assert_json_snapshot!(description);
    server.finish().await;
}
