//! The journal that the web app tests its fold with: each event of the sample, and what `domain::fold` makes of it.

use super::{
    fold::RoomFold,
    sample_journal::{SampleJournal, json_of},
    sample_runs::sample,
};
use std::{fmt::Write as _, fs, path::Path};

const UPDATE: &str = "GREENROOM_UPDATE_FIXTURES";

#[test]
fn the_fixture_of_the_web_app_is_the_fold_of_the_sample() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/feed/fixtures/journal.json");
    let fixture = fixture(&sample());
    #[expect(clippy::disallowed_methods, reason = "the request to write the file instead of comparing it")]
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &fixture).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap();
    let differs = stored.lines().zip(fixture.lines()).position(|(stored, folded)| stored != folded);
    assert!(
        stored == fixture,
        "journal.json of the web app differs from the fold, first in line {:?}. If the change is intended, set {UPDATE}=1, \
         run this test again, and make the web app's fold agree.",
        differs.map(|index| index + 1),
    );
}

/// One line per event, so that a change is readable in a diff.
fn fixture(journal: &SampleJournal) -> String {
    let mut fold = RoomFold::default();
    let mut text = format!("{{\"room\":\"{}\",\"epoch\":\"7c9e6f2a\",\"steps\":[\n", journal.room_id);
    let last = journal.events.len() - 1;
    for (index, event) in journal.events.iter().enumerate() {
        let change = serde_json::to_string(&fold.apply(event)).unwrap();
        let comma = if index == last { "" } else { "," };
        writeln!(text, r#"{{"event":{},"change":{change}}}{comma}"#, json_of(event)).unwrap();
    }
    let runs: Vec<String> = journal.runs.iter().map(|run| serde_json::to_string(run).unwrap()).collect();
    writeln!(text, "],\"runs\":[\n{}\n]}}", runs.join(",\n")).unwrap();
    text
}
