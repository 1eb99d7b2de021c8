//! `greenroom --version`, which people quote when they report a problem.

use crate::run;

#[tokio::test]
async fn the_version_names_the_commit_and_its_date() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["--version"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let line = output.stdout.strip_suffix('\n').unwrap();
    let start = format!("greenroom {} (", env!("CARGO_PKG_VERSION"));
    let built_from = line.strip_prefix(&start).and_then(|rest| rest.strip_suffix(')')).unwrap();
    // Only `cargo xtask serve` and `cargo xtask dist` name the commit.
    if built_from != "development build" {
        let (commit, date) = built_from.split_once(' ').unwrap();
        assert!(commit.len() >= 10, "{line}");
        assert!(date.len() == 10 && date.split('-').all(|part| part.parse::<u32>().is_ok()), "{line}");
    }
    assert_eq!(run(dir.path(), &["-V"]).await.stdout, output.stdout);
}
