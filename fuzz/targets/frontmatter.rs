//! A `SKILL.md`: any text is parsed or rejected with findings, without a panic.
#![no_main]

use domain::skill::document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (frontmatter, body) = document::split_frontmatter(text);
    assert!(frontmatter.map_or(0, str::len) + body.len() <= text.len());
    document::parse(text, Some("a-skill"));
    document::summary(text);
});
