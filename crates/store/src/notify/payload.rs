//! The messages between servers: JSON, small enough for PostgreSQL.

use super::{Topic, outbox::PendingTopics};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// PostgreSQL rejects a payload of 8000 bytes.
const MAX_BYTES: usize = 7999;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Payload {
    /// The server that sent the message: it ignores its own.
    pub node: Uuid,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<Topic>,
    /// Anything may have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everything: bool,
}

impl Payload {
    /// Writes messages with all topics.
    pub(super) fn write(node: Uuid, pending: &PendingTopics) -> Result<Vec<String>, serde_json::Error> {
        let everything = Self { node, topics: Vec::new(), everything: pending.everything };
        let mut payloads = Vec::new();
        if everything.everything {
            payloads.push(serde_json::to_string(&everything)?);
        }
        let (start, end) = (format!("{{\"node\":\"{node}\",\"topics\":["), "]}");
        let mut payload = String::new();
        for topic in pending.topics() {
            let topic = serde_json::to_string(&topic)?;
            if !payload.is_empty() && payload.len() + 1 + topic.len() + end.len() > MAX_BYTES {
                payloads.push(std::mem::take(&mut payload) + end);
            }
            payload.push_str(if payload.is_empty() { &start } else { "," });
            payload.push_str(&topic);
        }
        if !payload.is_empty() {
            payloads.push(payload + end);
        }
        Ok(payloads)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, Payload, PendingTopics, Topic};
    use crate::notify::{OwnerList, outbox::NotifyOutbox};
    use domain::{
        ids::{RoomId, RunId},
        name::Name,
        owner::Owner,
    };
    use uuid::Uuid;

    fn pending(topics: &[Topic]) -> PendingTopics {
        let outbox = NotifyOutbox::default();
        topics.iter().for_each(|topic| outbox.add(topic.clone()));
        outbox.take()
    }

    fn read(payloads: &[String], node: Uuid) -> Vec<Topic> {
        let mut topics = Vec::new();
        for payload in payloads {
            assert!(payload.len() <= MAX_BYTES, "{} bytes", payload.len());
            let read: Payload = serde_json::from_str(payload).unwrap();
            assert_eq!((read.node, read.everything), (node, false));
            assert!(!read.topics.is_empty());
            topics.extend(read.topics);
        }
        topics
    }

    #[test]
    fn every_topic_is_written_and_read() {
        let node = Uuid::new_v4();
        let topics = [
            Topic::Queue,
            Topic::Run(RunId::generate()),
            Topic::Settled(RunId::generate()),
            Topic::Room { id: RoomId::generate(), head: u64::MAX },
            Topic::List { owner: Owner::local(), list: OwnerList::Rooms },
        ];
        let payloads = Payload::write(node, &pending(&topics)).unwrap();
        assert_eq!(payloads.len(), 1);
        assert_eq!(read(&payloads, node), topics);
        assert!(Payload::write(node, &PendingTopics::default()).unwrap().is_empty());
    }

    #[test]
    fn a_payload_has_a_limit() {
        let node = Uuid::new_v4();
        let mut topics: Vec<Topic> =
            (0..3000).map(|_| Topic::Room { id: RoomId::generate(), head: u64::MAX }).collect();
        topics.extend((0..500).map(|n| {
            let name = Name::parse(&format!("{n:0>60}")).unwrap();
            Topic::List { owner: Owner::new(name), list: OwnerList::Skills }
        }));
        let payloads = Payload::write(node, &pending(&topics)).unwrap();
        let read = read(&payloads, node);
        assert_eq!(read.len(), topics.len());
        assert!(topics.iter().all(|topic| read.contains(topic)));
        assert!(payloads[..payloads.len() - 1].iter().all(|payload| payload.len() > MAX_BYTES - 200), "well filled");
    }

    #[test]
    fn too_many_topics_are_one_short_message() {
        let node = Uuid::new_v4();
        let payloads = Payload::write(node, &PendingTopics::everything()).unwrap();
        let read: Payload = serde_json::from_str(&payloads[0]).unwrap();
        assert_eq!((payloads.len(), read), (1, Payload { node, topics: Vec::new(), everything: true }));
    }
}
