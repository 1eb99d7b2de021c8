//! Three readers to a room, one at each door. They come back by themselves, with their position, whenever the server is
//! gone, and write down everything they are shown.

use crate::{
    ledger::{Door, Ledger},
    trigger::{Moment, Trigger},
};
use domain::position::Position;
use std::{sync::Arc, time::Duration};
use testkit::client::{Api, Error, Said, SseReader, WsReader};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const BEFORE_RECONNECT: Duration = Duration::from_millis(20);
const BETWEEN_POLLS: Duration = Duration::from_millis(15);
const PAGE: usize = 300;
/// Enough to know what is wrong, few enough to print.
const MAX_FAULTS: usize = 20;

#[derive(Clone)]
struct Reader {
    api: Api,
    ledger: Arc<Ledger>,
    trigger: Arc<Trigger>,
    door: Door,
}

pub fn start(
    tasks: &mut JoinSet<()>,
    api: &Api,
    ledger: &Arc<Ledger>,
    trigger: &Arc<Trigger>,
    stop: &CancellationToken,
) {
    for door in Door::ALL {
        let reader = Reader { api: api.clone(), ledger: ledger.clone(), trigger: trigger.clone(), door };
        let stop = stop.clone();
        tasks.spawn(async move {
            stop.run_until_cancelled(reader.follow()).await;
        });
    }
}

impl Reader {
    async fn follow(self) {
        let mut position = Position::START;
        loop {
            let outcome = match self.door {
                Door::Sse => self.over_sse(&mut position).await,
                Door::WebSocket => self.over_websocket(&mut position).await,
                Door::Page => self.page_by_page(&mut position).await,
            };
            if let Err(error) = outcome
                && !error.is_connection()
            {
                self.fault(error.to_string());
            }
            sleep(BEFORE_RECONNECT).await;
        }
    }

    async fn over_sse(&self, position: &mut Position) -> Result<(), Error> {
        let mut reader = SseReader::connect(&self.api, self.ledger.room, position).await?;
        self.ledger.connected(self.door);
        while let Some(said) = reader.next().await? {
            self.hear(said);
            position.clone_from(reader.position());
        }
        Ok(())
    }

    async fn over_websocket(&self, position: &mut Position) -> Result<(), Error> {
        let room = self.ledger.room;
        let mut reader = WsReader::connect(&self.api).await?;
        reader.subscribe(room, position).await?;
        self.ledger.connected(self.door);
        while let Some((_, said)) = reader.next().await? {
            self.hear(said);
            if let Some(now) = reader.position(room) {
                position.clone_from(now);
            }
        }
        Ok(())
    }

    async fn page_by_page(&self, position: &mut Position) -> Result<(), Error> {
        let mut first = true;
        loop {
            let page = match self.api.events(self.ledger.room, position, PAGE).await {
                Err(error) if error.code() == Some("position_reset") => {
                    self.ledger.reset(self.door, format!("{:?}: told to start over: {error}", self.door));
                    *position = Position::START;
                    continue;
                }
                other => other?,
            };
            if std::mem::take(&mut first) {
                self.ledger.connected(self.door);
            }
            let is_empty = page.events.is_empty();
            for event in page.events {
                *position = Position { epoch: Some(page.epoch.clone()), seq: event.seq };
                self.hear(Said::Event(event));
            }
            if is_empty {
                sleep(BETWEEN_POLLS).await;
            }
        }
    }

    fn hear(&self, said: Said) {
        match said {
            Said::Event(event) => {
                // First of all: every microsecond counts for a server that shows what it has not stored yet.
                self.trigger.happened(Moment::Shown);
                self.ledger.show(self.door, &event);
            }
            Said::Heartbeat(_) => {}
            Said::Reset(place) => {
                self.ledger.reset(self.door, format!("{:?}: told to start over at {place:?}", self.door));
            }
        }
    }

    fn fault(&self, fault: String) {
        let known = self.ledger.entries().journeys[self.door as usize].faults.len();
        if known < MAX_FAULTS {
            self.ledger.reader_fault(self.door, format!("{:?}: {fault}", self.door));
        }
    }
}
