//! Where a client is in the stream of a run: the `id:` of the last frame that it has.

use domain::{
    ids::RunId,
    position::{Position, Seq},
};
use std::{fmt, str::FromStr};

/// `<run>/<epoch>-<seq>`: the client has all frames of this event and of those before it. With `.<count>` it has only so
/// many frames of the event: one event may become two frames, and a connection may break between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamPosition {
    pub run: RunId,
    pub position: Position,
    pub frames: Option<usize>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("it is not the id of a frame of this stream")]
pub struct StreamPositionError;

impl StreamPosition {
    /// Whether the client lacks a frame, by its event and its place among the frames of that event.
    pub(super) fn is_before(&self, seq: Seq, index: usize) -> bool {
        match seq.cmp(&self.position.seq) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => self.frames.is_some_and(|sent| index >= sent),
            std::cmp::Ordering::Less => false,
        }
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.run)?;
        if let Some(epoch) = &self.position.epoch {
            write!(f, "{epoch}-")?;
        }
        write!(f, "{}", self.position.seq)?;
        self.frames.map_or(Ok(()), |count| write!(f, ".{count}"))
    }
}

impl FromStr for StreamPosition {
    type Err = StreamPositionError;
    fn from_str(text: &str) -> Result<Self, StreamPositionError> {
        let (run, rest) = text.split_once('/').ok_or(StreamPositionError)?;
        let (position, frames) = match rest.split_once('.') {
            Some((position, count)) => (position, Some(count.parse::<u16>().map_err(|_| StreamPositionError)?.into())),
            None => (rest, None),
        };
        Ok(Self {
            run: run.parse().map_err(|_| StreamPositionError)?,
            position: position.parse().map_err(|_| StreamPositionError)?,
            frames,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::StreamPosition;
    use domain::ids::RunId;

    #[test]
    fn a_position_parses_its_own_text_and_nothing_else() {
        let run = RunId::generate();
        for text in [format!("{run}/7c9e6f2a-17"), format!("{run}/7c9e6f2a-17.1")] {
            assert_eq!(text.parse::<StreamPosition>().unwrap().to_string(), text);
        }
        for bad in ["", "7c9e6f2a-17", "x/7c9e6f2a-17", &format!("{run}/"), &format!("{run}/a-1.x"), &format!("{run}")]
        {
            assert!(bad.parse::<StreamPosition>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_connection_that_broke_between_two_frames_of_an_event_gets_the_second() {
        let at = |text: &str| format!("{}/e-{text}", RunId::generate()).parse::<StreamPosition>().unwrap();
        assert!(!at("17").is_before(17, 1) && !at("17").is_before(16, 0) && at("17").is_before(18, 0));
        assert!(!at("17.1").is_before(17, 0) && at("17.1").is_before(17, 1));
    }
}
