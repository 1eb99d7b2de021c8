//! Parses bytes into server-sent events. Pure; the size of one event is bounded.

/// One event. `name` is `message` if the stream names none; `id` is the id sent with this event, if any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSentEvent {
    pub name: String,
    pub data: String,
    pub id: Option<String>,
}

#[derive(Debug)]
pub struct EventStreamParser {
    max_bytes: usize,
    line: Vec<u8>,
    /// The last line ended with a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
}

/// An event exceeded the size limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a server-sent event is larger than {0} bytes")]
pub struct EventTooLong(pub usize);

impl EventStreamParser {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
        }
    }

    /// Returns the events that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<ServerSentEvent>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (taken, left) = end.map_or((rest, &rest[rest.len()..]), |at| (&rest[..at], &rest[at + 1..]));
            if self.line.len() + self.data.len() + taken.len() > self.max_bytes {
                return Err(EventTooLong(self.max_bytes));
            }
            self.line.extend_from_slice(taken);
            if let Some(at) = end {
                self.after_return = rest[at] == b'\r';
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_line(&String::from_utf8_lossy(&line)));
            }
            rest = left;
        }
        Ok(events)
    }

    fn end_line(&mut self, line: &str) -> Option<ServerSentEvent> {
        let line = if std::mem::take(&mut self.at_start) { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            let name = if name.is_empty() { "message".to_owned() } else { name };
            let id = self.id.take();
            return std::mem::take(&mut self.has_data).then_some(ServerSentEvent { name, data, id });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // The format ignores an id with a NUL: it could not be sent back in a header.
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments begin with a colon. Retry times are not used here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{EventStreamParser, EventTooLong, ServerSentEvent};
    use proptest::prelude::*;

    fn parse_all(text: &[u8]) -> Vec<ServerSentEvent> {
        EventStreamParser::new(10_000).push(text).unwrap()
    }

    fn event(name: &str, data: &str) -> ServerSentEvent {
        ServerSentEvent { name: name.into(), data: data.into(), id: None }
    }

    #[test]
    fn parses_names_data_and_comments() {
        let text = b"\xef\xbb\xbfevent: endpoint\ndata: /m?s=1\n\n: {\"type\":\"ping\"}\n\ndata:a\ndata: b\r\n\r\nid: 7\n\ndata\n\n";
        assert_eq!(parse_all(text), [event("endpoint", "/m?s=1"), event("message", "a\nb"), event("message", "")]);
        assert_eq!(parse_all(b"data: unfinished\n"), []);
    }

    #[test]
    fn an_id_belongs_to_its_event() {
        let first = ServerSentEvent { id: Some("7".into()), ..event("message", "") };
        assert_eq!(
            parse_all(b"id: 7\ndata:\n\ndata: b\n\nid: a\0b\ndata: c\n\n"),
            [first, event("message", "b"), event("message", "c"),]
        );
    }

    #[test]
    fn invariant_14_limits_an_endless_event_is_rejected() {
        let mut events = EventStreamParser::new(100);
        assert_eq!(events.push(&[b'x'; 100]), Ok(Vec::new()));
        assert_eq!(events.push(b"x"), Err(EventTooLong(100)));
        let mut events = EventStreamParser::new(100);
        let rejected = (0..50).find_map(|_| events.push(b"data: xxxx\n").err());
        assert_eq!(rejected, Some(EventTooLong(100)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn chunk_boundaries_do_not_change_the_events(
            text in "(event: [a-z]{0,5}|data: ?[a-zä:]{0,9}|id: [0-9]|: x|)(\n|\r|\r\n|\n\n|\r\n\r\n){1,2}".prop_flat_map(|piece| {
                proptest::collection::vec(Just(piece), 0..8)
            }),
            cuts in proptest::collection::vec(0..200_usize, 0..10),
        ) {
            let bytes = text.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut events = EventStreamParser::new(10_000);
            let pieces: Vec<ServerSentEvent> =
                cuts.windows(2).flat_map(|cut| events.push(&bytes[cut[0]..cut[1]]).unwrap()).collect();
            prop_assert_eq!(pieces, parse_all(&bytes));
        }
    }
}
