//! Three readers per room, one per transport. They reconnect with their position when the server is down and record
//! every event they receive.

use crate::{
    ledger::{ReaderTransport, RoomLedger},
    trigger::{KillMoment, KillTrigger},
};
use domain::position::Position;
use std::{sync::Arc, time::Duration};
use testkit::client::{SeenItem, SseReader, TestClient, TestClientError, WsReader};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const BEFORE_RECONNECT: Duration = Duration::from_millis(20);
const BETWEEN_POLLS: Duration = Duration::from_millis(15);
const PAGE: usize = 300;
/// Enough to diagnose a problem, few enough to print.
const MAX_FAULTS: usize = 20;

#[derive(Clone)]
struct ChaosReader {
    api: TestClient,
    ledger: Arc<RoomLedger>,
    trigger: Arc<KillTrigger>,
    transport: ReaderTransport,
}

pub fn start(
    tasks: &mut JoinSet<()>,
    api: &TestClient,
    ledger: &Arc<RoomLedger>,
    trigger: &Arc<KillTrigger>,
    stop: &CancellationToken,
) {
    for transport in ReaderTransport::ALL {
        let reader = ChaosReader { api: api.clone(), ledger: ledger.clone(), trigger: trigger.clone(), transport };
        let stop = stop.clone();
        tasks.spawn(async move {
            stop.run_until_cancelled(reader.follow()).await;
        });
    }
}

impl ChaosReader {
    async fn follow(self) {
        let mut position = Position::START;
        loop {
            let outcome = match self.transport {
                ReaderTransport::Sse => self.over_sse(&mut position).await,
                ReaderTransport::WebSocket => self.over_websocket(&mut position).await,
                ReaderTransport::Page => self.page_by_page(&mut position).await,
            };
            if let Err(error) = outcome
                && !error.is_connection()
            {
                self.fault(error.to_string());
            }
            sleep(BEFORE_RECONNECT).await;
        }
    }

    async fn over_sse(&self, position: &mut Position) -> Result<(), TestClientError> {
        let mut reader = SseReader::connect(&self.api, self.ledger.room, position).await?;
        self.ledger.record_connection(self.transport);
        while let Some(item) = reader.next().await? {
            self.record(item);
            position.clone_from(reader.position());
        }
        Ok(())
    }

    async fn over_websocket(&self, position: &mut Position) -> Result<(), TestClientError> {
        let room = self.ledger.room;
        let mut reader = WsReader::connect(&self.api).await?;
        reader.subscribe(room, position).await?;
        self.ledger.record_connection(self.transport);
        while let Some((_, item)) = reader.next().await? {
            self.record(item);
            if let Some(now) = reader.position(room) {
                position.clone_from(now);
            }
        }
        Ok(())
    }

    async fn page_by_page(&self, position: &mut Position) -> Result<(), TestClientError> {
        let mut first = true;
        loop {
            let page = match self.api.events(self.ledger.room, position, PAGE).await {
                Err(error) if error.code() == Some("position_reset") => {
                    self.ledger.record_reset(self.transport, format!("{:?}: reset: {error}", self.transport));
                    *position = Position::START;
                    continue;
                }
                other => other?,
            };
            if std::mem::take(&mut first) {
                self.ledger.record_connection(self.transport);
            }
            let is_empty = page.events.is_empty();
            for event in page.events {
                *position = Position { epoch: Some(page.epoch.clone()), seq: event.seq };
                self.record(SeenItem::Event(event));
            }
            if is_empty {
                sleep(BETWEEN_POLLS).await;
            }
        }
    }

    fn record(&self, item: SeenItem) {
        match item {
            SeenItem::Event(event) => {
                // Before anything else: every microsecond counts to catch a server that shows events before storing
                // them.
                self.trigger.fire(KillMoment::Shown);
                self.ledger.record_event(self.transport, &event);
            }
            SeenItem::Heartbeat(_) => {}
            SeenItem::Reset(head) => {
                self.ledger.record_reset(self.transport, format!("{:?}: reset to {head:?}", self.transport));
            }
        }
    }

    fn fault(&self, fault: String) {
        let known = self.ledger.entries().readers[self.transport as usize].faults.len();
        if known < MAX_FAULTS {
            self.ledger.record_reader_fault(self.transport, format!("{:?}: {fault}", self.transport));
        }
    }
}
