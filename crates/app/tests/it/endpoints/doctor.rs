//! The self-check of a server.

use super::requests::get;
use testkit::{database::TestDatabase, server::TestServer};

on_both_databases! {
    database: doctor_reports_checks_without_paths;
}

async fn doctor_reports_checks_without_paths(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let found = get(server.api(), "/api/doctor").await;
    let report = found.expect_status(200);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let checks = report["checks"].as_array().unwrap();
    let status = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name} in {report}"))["status"].as_str().unwrap()
    };
    for name in ["configuration", "data directory", "private files", "database", "address", "scripted"] {
        assert_eq!(status(name), "ok", "{report}");
    }
    // Whether there is one depends on the machine.
    assert!(["ok", "warn"].contains(&status("sandbox")), "{report}");
    for check in checks {
        let needs_advice = check["status"] == "warn";
        assert_eq!(check["advice"].is_string(), needs_advice, "{check}");
    }
    let folder = server.database().folder().display().to_string();
    assert!(!found.text.contains(&folder) && !found.text.contains("postgres://"), "{}", found.text);
    server.finish().await;
}
