//! A `.mcp.json`: parsing and printing round-trips.
#![no_main]

use domain::mcp::{parse_file, print_file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(servers) = parse_file(text) else { return };
    let good: Vec<_> = servers.iter().filter_map(|(name, config)| Some((name.as_str(), config.as_ref().ok()?))).collect();
    let again = parse_file(&print_file(good.iter().copied())).expect("printed output can be parsed");
    assert_eq!(again.len(), good.len());
    for (name, config) in good {
        assert_eq!(again[name].as_ref().ok(), Some(config));
    }
});
