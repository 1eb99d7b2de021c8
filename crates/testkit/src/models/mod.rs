//! A double of the model vendors: it uses their real wire formats on loopback, so that the real CLIs can be tested
//! without a key, cost or network.
//!
//! It implements Anthropic Messages, OpenAI Responses and chat completions, and Gemini. The last user text scripts the
//! answer, see [`script`](self#the-script). `history` extracts it from a request, `script` plans the answer, one file
//! per API formats it (pure: an answer in, bytes and pauses out), `reply` sends it with the pauses, and `handler`
//! receives requests. It knows nothing about Greenroom except the format of its recap.
//!
//! # The script
//!
//! The last line of the last user text that starts with one of these words; anything else is echoed.
//!
//! | line | answer |
//! |---|---|
//! | `!count N [MS]` | `1 2 3 …` to N, one number every MS milliseconds (0: all at once) |
//! | `!slow N MS` | N words, one every MS milliseconds |
//! | `!think [TEXT]` | the text as thinking, then a short answer |
//! | `!tool COMMAND` | a call of the CLI's shell tool; after the result, a text that quotes it |
//! | `!write PATH` | a call of the CLI's file-writing tool |
//! | `!call NAME [JSON]` | a call of the tool whose name ends with NAME; `SPACE/NAME` for tools in a namespace |
//! | `!recall` | the user texts in the history and in a recap: shows what a session remembers |
//! | `!fail [STATUS]` | an HTTP error in the API's own shape |
//! | `!fail-once STATUS [WORD]` | the same, but only for the first request with this text |
//! | `!xml NAME [JSON]` | a call as XML in the text; after the result, a text that quotes it |
//! | `!midfail` | a few words, then an error inside the stream |
//! | `!midfail-once WORD` | the same, but only for the first request with this text |
//! | `!cut` | a few words, then the connection is cut |
//!
//! Several call lines at the end make one message with several calls; a `!think` line before them is its thinking. The key `bad-key` is rejected with 401, a model
//! whose name contains `bad-model` with 404.

mod anthropic;
mod chat;
mod errors;
mod gemini;
mod handler;
mod history;
mod log;
mod reply;
mod responses;
mod script;
mod wrappers;

pub use handler::VendorApi;
pub use log::{AnswerProgress, RecordedRequest};

use handler::ModelHandler;
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

/// A running double. Dropping it stops it and cuts open answers.
#[derive(Debug)]
pub struct ModelDouble {
    address: SocketAddr,
    handler: Arc<ModelHandler>,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl ModelDouble {
    /// Starts on any free local port.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(0).await
    }

    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (door, cancel) = (Arc::new(ModelHandler::default()), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(handler::serve(listener, Arc::clone(&door), cancel.clone()));
        Ok(Self { address, handler: door, cancel, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for the CLIs: unchanged for Anthropic and Gemini, with `/v1` appended for OpenAI.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the recorded requests, oldest first. Only the most recent are kept.
    pub fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.handler.log.all()
    }

    /// Waits for a matching request, including past ones.
    pub async fn wait_for(
        &self,
        within: Duration,
        fits: impl Fn(&RecordedRequest) -> bool,
    ) -> Result<Arc<RecordedRequest>, Elapsed> {
        timeout(within, self.handler.log.wait_for(fits)).await
    }

    /// Stops the double and returns when all answers have ended and the port is free.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
