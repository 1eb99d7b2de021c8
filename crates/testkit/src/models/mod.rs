//! A double of the model vendors: it speaks their real wire formats on loopback, so that the real CLIs can be driven
//! without a key, a bill or a network.
//!
//! Anthropic Messages, OpenAI Responses and chat completions, Gemini. What it answers is scripted by the last thing a
//! person said, see [`script`](self#the-script). `history` finds that in a request, `script` decides, one file for each
//! API says it in that API's words (pure: an answer in, bytes and pauses out), `reply` plays them by the clock and `door`
//! is where requests come in. It knows nothing of Greenroom but the form of its recap.
//!
//! # The script
//!
//! The last line of the last user text that begins with one of these words; all else is answered by an echo.
//!
//! | line | answer |
//! |---|---|
//! | `!count N [MS]` | `1 2 3 …` to N, a number each MS milliseconds (0: all at once) |
//! | `!slow N MS` | N words, one each MS milliseconds |
//! | `!think [TEXT]` | the text as thinking, then a short answer |
//! | `!tool COMMAND` | a call of the CLI's shell tool; when its result is there, a text that quotes it |
//! | `!write PATH` | a call of the CLI's tool that writes files |
//! | `!call NAME [JSON]` | a call of the tool whose name ends with NAME; `SPACE/NAME` where tools have a namespace |
//! | `!recall` | the user texts found in the history, and what a recap told: shows what a session remembers |
//! | `!fail [STATUS]` | an HTTP error in the API's own shape |
//! | `!fail-once STATUS [WORD]` | the same, but only for the first request with this text |
//! | `!xml NAME [JSON]` | a call as XML in the text; when its result is there, a text that quotes it |
//! | `!midfail` | a few words, then an error inside the stream |
//! | `!midfail-once WORD` | the same, but only for the first request with this text |
//! | `!cut` | a few words, then the connection is gone |
//!
//! Several lines of calls at the end make one message with several calls. The key `bad-key` is refused with 401, a model
//! whose name contains `bad-model` with 404.

mod anthropic;
mod chat;
mod door;
mod gemini;
mod history;
mod log;
mod refusal;
mod reply;
mod responses;
mod script;
mod wrappings;

pub use door::Api;
pub use log::{Progress, Request};

use door::Door;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{error::Elapsed, timeout},
};
use tokio_util::sync::CancellationToken;

/// A running double. Dropping it stops it and cuts what it was saying.
#[derive(Debug)]
pub struct Models {
    address: SocketAddr,
    door: Arc<Door>,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Models {
    /// On any free port of this machine.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(0).await
    }

    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (door, cancel) = (Arc::new(Door::default()), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(door::serve(listener, Arc::clone(&door), cancel.clone()));
        Ok(Self { address, door, cancel, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the CLIs take as base address: as it is for Anthropic and Gemini, with `/v1` for OpenAI.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far, oldest first. The oldest are forgotten after many.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.door.log.all()
    }

    /// Waits for a request that fits, among those that were made already as well.
    pub async fn wait_for(&self, within: Duration, fits: impl Fn(&Request) -> bool) -> Result<Arc<Request>, Elapsed> {
        timeout(within, self.door.log.wait_for(fits)).await
    }

    /// Returns when nobody is answered any more and the port is free.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
