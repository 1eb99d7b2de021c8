//! Server-sent events out of bytes. Pure, and with an end to how long one may be.

/// One event: its name, `message` where it has none, its data, and its id where it has one of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub name: String,
    pub data: String,
    pub id: Option<String>,
}

#[derive(Debug)]
pub struct Events {
    max: usize,
    line: Vec<u8>,
    /// The last line ended with a carriage return, so a line feed may belong to it.
    after_return: bool,
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
}

/// An event that does not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub struct TooLong(pub usize);

impl Events {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
        }
    }

    /// The events that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (taken, left) = end.map_or((rest, &rest[rest.len()..]), |at| (&rest[..at], &rest[at + 1..]));
            if self.line.len() + self.data.len() + taken.len() > self.max {
                return Err(TooLong(self.max));
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

    fn end_line(&mut self, line: &str) -> Option<Event> {
        let line = if std::mem::take(&mut self.at_start) { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            let name = if name.is_empty() { "message".to_owned() } else { name };
            let id = self.id.take();
            return std::mem::take(&mut self.has_data).then_some(Event { name, data, id });
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
            // As the format wants it: an id that could not be sent back is none.
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments begin with a colon; retry times have no use here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events, TooLong};
    use proptest::prelude::*;

    fn all(text: &[u8]) -> Vec<Event> {
        Events::new(10_000).push(text).unwrap()
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into(), id: None }
    }

    #[test]
    fn names_data_and_comments() {
        let text = b"\xef\xbb\xbfevent: endpoint\ndata: /m?s=1\n\n: {\"type\":\"ping\"}\n\ndata:a\ndata: b\r\n\r\nid: 7\n\ndata\n\n";
        assert_eq!(all(text), [event("endpoint", "/m?s=1"), event("message", "a\nb"), event("message", "")]);
        assert_eq!(all(b"data: unfinished\n"), []);
    }

    #[test]
    fn an_id_belongs_to_its_event() {
        let first = Event { id: Some("7".into()), ..event("message", "") };
        assert_eq!(
            all(b"id: 7\ndata:\n\ndata: b\n\nid: a\0b\ndata: c\n\n"),
            [first, event("message", "b"), event("message", "c"),]
        );
    }

    #[test]
    fn invariant_14_limits_an_event_without_end_is_refused() {
        let mut events = Events::new(100);
        assert_eq!(events.push(&[b'x'; 100]), Ok(Vec::new()));
        assert_eq!(events.push(b"x"), Err(TooLong(100)));
        let mut events = Events::new(100);
        let refused = (0..50).find_map(|_| events.push(b"data: xxxx\n").err());
        assert_eq!(refused, Some(TooLong(100)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(
            text in "(event: [a-z]{0,5}|data: ?[a-zä:]{0,9}|id: [0-9]|: x|)(\n|\r|\r\n|\n\n|\r\n\r\n){1,2}".prop_flat_map(|piece| {
                proptest::collection::vec(Just(piece), 0..8)
            }),
            cuts in proptest::collection::vec(0..200_usize, 0..10),
        ) {
            let bytes = text.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut events = Events::new(10_000);
            let pieces: Vec<Event> =
                cuts.windows(2).flat_map(|cut| events.push(&bytes[cut[0]..cut[1]]).unwrap()).collect();
            prop_assert_eq!(pieces, all(&bytes));
        }
    }
}
