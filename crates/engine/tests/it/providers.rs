//! What is said of providers, and how they are put away.

use crate::scene::Stage;
use engine::commands::InspectionView;
use std::sync::atomic::Ordering;
use testkit::database::TestDatabase;

contract! { they_are_looked_at_once_a_minute_and_closed_with_the_server }

async fn they_are_looked_at_once_a_minute_and_closed_with_the_server(database: TestDatabase) {
    let stage = Stage::new(database).await;
    let views = stage.engine.inspect_providers().await;
    assert_eq!(stage.engine.inspect_providers().await, views);
    assert_eq!(stage.seen.inspected.load(Ordering::SeqCst), 2, "each of the two once");
    let said: Vec<_> = views.iter().map(|view| (view.name.as_str(), view.capabilities.steer)).collect();
    assert_eq!(said, [("p", true), ("q", false)]);
    let ready = InspectionView::Ready { version: Some("1.2".into()), program: Some("puppet".into()) };
    assert_eq!(views[0].inspection, ready, "where the program lies is not told");

    let seen = stage.seen.clone();
    stage.stop().await;
    assert_eq!(seen.closed.load(Ordering::SeqCst), 2);
}
