//! Invalid and extreme tool lists.

use super::{DEADLINE, McpFixture, fake, good};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use workbench::mcp::McpToolListing;

fn names(listing: &McpToolListing) -> Vec<&str> {
    listing.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn invalid_tools_are_quarantined() {
    let fixture = McpFixture::new();
    let listing = fixture.manager.tools(&fake("bad-tools", "")).await.unwrap();
    assert_eq!(names(&listing), ["good", "odd_hint"]);
    let reasons: Vec<_> = listing.quarantined.iter().map(|bad| (bad.name.as_deref(), bad.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (Some("no_schema"), "it has no inputSchema"),
            (Some("null_schema"), "its inputSchema is not an object"),
            (Some("bool_schema"), "its inputSchema is not an object"),
            (None, "its name is 7, not a string"),
        ]
    );
    assert_eq!(fixture.manager.status(&fake("bad-tools", "")).quarantined, 4);
    fixture.close().await;
}

#[tokio::test]
async fn paging_is_bounded() {
    let fixture = McpFixture::with(|settings| settings.max_pages = 7);
    let repeated = timeout(DEADLINE, fixture.manager.tools(&fake("repeated-cursor", ""))).await.unwrap().unwrap();
    assert_eq!(names(&repeated), ["tool_0", "tool_1"]);
    assert!(repeated.remarks[0].contains("repeats a page cursor"), "{:?}", repeated.remarks);
    let empty = timeout(DEADLINE, fixture.manager.tools(&fake("empty-cursor", ""))).await.unwrap().unwrap();
    assert_eq!((names(&empty), empty.remarks.len()), (vec!["tool_0"], 0));
    let endless = timeout(DEADLINE, fixture.manager.tools(&fake("endless", ""))).await.unwrap().unwrap();
    assert_eq!(endless.tools.len(), 7);
    assert!(endless.remarks[0].contains("more than 7 pages"), "{:?}", endless.remarks);
    let failure = fixture.manager.tools(&fake("no-list", "")).await.unwrap_err();
    assert_eq!(failure.code(), "mcp_bad_answer");
    fixture.close().await;
}

#[tokio::test]
async fn five_thousand_tools_are_listed_in_under_a_second() {
    let fixture = McpFixture::new();
    let server = fake("many", "5000");
    let mut fastest = Duration::MAX;
    // Several attempts, because other work shares the processor.
    for _ in 0..10 {
        fixture.manager.stop(&server).await;
        // Starts the server first: only the listing is measured.
        assert!(fixture.call(&server, "echo", json!({"text": "up"})).await.is_ok());
        let begin = Instant::now();
        let listing = fixture.manager.tools(&server).await.unwrap();
        fastest = fastest.min(begin.elapsed());
        assert_eq!((listing.tools.len(), listing.quarantined.len()), (5000, 0));
        if fastest < Duration::from_secs(1) {
            break;
        }
    }
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
    let listing = fixture.manager.tools(&server).await.unwrap();
    let again = fixture.manager.tools(&server).await.unwrap();
    assert!(Arc::ptr_eq(&listing, &again), "the list must be cached");
    fixture.close().await;
}

#[tokio::test]
async fn change_notification_refreshes_the_list() {
    let fixture = McpFixture::with(|settings| settings.debounce = Duration::from_millis(50));
    let server = good();
    let before = fixture.manager.tools(&server).await.unwrap();
    assert!(!names(&before).contains(&"fresh"));
    assert_eq!(fixture.text(&server, "change").await, "changed");
    // The list is refreshed without a request.
    let count = before.tools.len();
    timeout(DEADLINE, async {
        while fixture.manager.status(&server).tools != Some(count + 1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the list is refreshed");
    assert!(names(&fixture.manager.tools(&server).await.unwrap()).contains(&"fresh"));
    assert_eq!(fixture.text(&server, "fresh").await, "fresh");
    fixture.close().await;
}
