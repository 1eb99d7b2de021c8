//! Lists of tools that would break a client that trusts them.

use super::{DEADLINE, Scene, fake, good};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use workbench::mcp::Listing;

fn names(listing: &Listing) -> Vec<&str> {
    listing.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn one_bad_tool_does_not_take_the_others_with_it() {
    let scene = Scene::new();
    let listing = scene.manager.tools(&fake("bad-tools", "")).await.unwrap();
    assert_eq!(names(&listing), ["good", "odd_hint"]);
    let reasons: Vec<_> = listing.quarantined.iter().map(|bad| (bad.name.as_deref(), bad.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (Some("no_schema"), "it has no inputSchema"),
            (Some("null_schema"), "its inputSchema is no object"),
            (Some("bool_schema"), "its inputSchema is no object"),
            (None, "its name is 7, which is no text"),
        ]
    );
    assert_eq!(scene.manager.status(&fake("bad-tools", "")).quarantined, 4);
    scene.close().await;
}

#[tokio::test]
async fn pages_have_an_end() {
    let scene = Scene::with(|settings| settings.max_pages = 7);
    let repeated = timeout(DEADLINE, scene.manager.tools(&fake("repeated-cursor", ""))).await.unwrap().unwrap();
    assert_eq!(names(&repeated), ["tool_0", "tool_1"]);
    assert!(repeated.remarks[0].contains("twice"), "{:?}", repeated.remarks);
    let empty = timeout(DEADLINE, scene.manager.tools(&fake("empty-cursor", ""))).await.unwrap().unwrap();
    assert_eq!((names(&empty), empty.remarks.len()), (vec!["tool_0"], 0));
    let endless = timeout(DEADLINE, scene.manager.tools(&fake("endless", ""))).await.unwrap().unwrap();
    assert_eq!(endless.tools.len(), 7);
    assert!(endless.remarks[0].contains("more than 7 pages"), "{:?}", endless.remarks);
    let failure = scene.manager.tools(&fake("no-list", "")).await.unwrap_err();
    assert_eq!(failure.code(), "mcp_bad_answer");
    scene.close().await;
}

#[tokio::test]
async fn five_thousand_tools_are_listed_in_under_a_second() {
    let scene = Scene::new();
    let server = fake("many", "5000");
    let mut fastest = Duration::MAX;
    // More than once, because other tests and other work want the processor too.
    for _ in 0..10 {
        scene.manager.stop(&server).await;
        // What is measured is the list, not the start of a program.
        assert!(scene.call(&server, "echo", json!({"text": "up"})).await.is_ok());
        let begin = Instant::now();
        let listing = scene.manager.tools(&server).await.unwrap();
        fastest = fastest.min(begin.elapsed());
        assert_eq!((listing.tools.len(), listing.quarantined.len()), (5000, 0));
        if fastest < Duration::from_secs(1) {
            break;
        }
    }
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
    let listing = scene.manager.tools(&server).await.unwrap();
    let again = scene.manager.tools(&server).await.unwrap();
    assert!(Arc::ptr_eq(&listing, &again), "it is asked once");
    scene.close().await;
}

#[tokio::test]
async fn word_of_a_change_brings_a_new_list() {
    let scene = Scene::with(|settings| settings.debounce = Duration::from_millis(50));
    let server = good();
    let before = scene.manager.tools(&server).await.unwrap();
    assert!(!names(&before).contains(&"fresh"));
    assert_eq!(scene.text(&server, "change").await, "changed");
    // By itself: nobody asks here.
    let count = before.tools.len();
    timeout(DEADLINE, async {
        while scene.manager.status(&server).tools != Some(count + 1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("it is listed again");
    assert!(names(&scene.manager.tools(&server).await.unwrap()).contains(&"fresh"));
    assert_eq!(scene.text(&server, "fresh").await, "fresh");
    scene.close().await;
}
