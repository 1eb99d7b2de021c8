//! A snapshot of the OpenAPI description: changes are visible in review, and the web client is generated from it.

use super::requests::get;
use testkit::{database::TestDatabase, server::TestServer};

#[tokio::test]
async fn the_description_of_the_api() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let description = get(server.api(), "/openapi.json").await.expect_status(200);
    insta::assert_json_snapshot!(description);
    server.finish().await;
}
