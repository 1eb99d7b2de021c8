//! A `.mcp.json`: parsing and printing round-trips.
#![no_main]

use domain::mcp::{parse, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(servers) = parse(text) else { return };
    let good: Vec<_> = servers.iter().filter_map(|(name, config)| Some((name.as_str(), config.as_ref().ok()?))).collect();
    let again = parse(&print(good.iter().copied())).expect("printed output can be parsed");
    assert_eq!(again.len(), good.len());
    for (name, config) in good {
        assert_eq!(again[name].as_ref().ok(), Some(config));
    }
});
