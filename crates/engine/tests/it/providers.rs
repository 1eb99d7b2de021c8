//! Inspection and shutdown of providers.

use crate::harness::EngineHarness;
use engine::commands::InspectionView;
use std::sync::atomic::Ordering;
use testkit::database::TestDatabase;

contract! { providers_are_inspected_once_a_minute_and_closed_with_the_engine }

async fn providers_are_inspected_once_a_minute_and_closed_with_the_engine(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let views = harness.engine.inspect_providers().await;
    assert_eq!(harness.engine.inspect_providers().await, views);
    assert_eq!(harness.seen.inspected.load(Ordering::SeqCst), 2, "each of the two providers once");
    let steerable: Vec<_> = views.iter().map(|view| (view.name.as_str(), view.capabilities.steer)).collect();
    assert_eq!(steerable, [("p", true), ("q", false)]);
    let ready = InspectionView::Ready { version: Some("1.2".into()), program: Some("manual".into()) };
    assert_eq!(views[0].inspection, ready, "the path of the program is not shown");

    let seen = harness.seen.clone();
    harness.stop().await;
    assert_eq!(seen.closed.load(Ordering::SeqCst), 2);
}
