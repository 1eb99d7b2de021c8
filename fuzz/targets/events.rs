//! Server-sent events: the parser accepts any bytes, and the result does not depend on how they are split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workbench::event_stream::EventStreamParser;

const MAX: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let Ok(whole) = EventStreamParser::new(MAX).push(bytes) else { return };
    let mut events = EventStreamParser::new(MAX);
    let pieces: Vec<_> = bytes.chunks(1).flat_map(|byte| events.push(byte).expect("the same bytes parsed as a whole")).collect();
    assert_eq!(pieces, whole);
});
