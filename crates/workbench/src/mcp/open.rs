//! From a config to a connection: start or reach the server, greet it in a way that it understands, check the version.

use super::{
    Failure, Identity, Settings,
    connection::{Connection, Peered},
    handler::Handler,
    health::Health,
    settings::{Era, VERSIONS},
    transport::{self, Ending, InProcess, Inside, Sse, Stdio},
};
use crate::process::{Command, Stderr, Supervisor};
use domain::mcp::{Server, ServerConfig, Transport, public_part};
use rmcp::{
    RoleClient,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::streamable_http_client::{AuthRequiredError, HttpStatusError, InsufficientScopeError},
};
use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_util::task::TaskTracker;

/// What all connections of a manager share.
pub struct Tools {
    pub supervisor: Supervisor,
    pub settings: Settings,
    pub chores: TaskTracker,
    http: OnceLock<Result<reqwest::Client, String>>,
    /// Servers inside of this program, by name.
    pub inside: Mutex<BTreeMap<String, Arc<dyn Inside>>>,
}

/// What the address of a server inside of this program begins with. No file can name one: there an address begins with
/// http:// or https://.
pub const INSIDE: &str = "in-process:";

type Service = RunningService<RoleClient, Handler>;

impl Tools {
    pub fn new(supervisor: Supervisor, settings: Settings) -> Self {
        Self { supervisor, settings, chores: TaskTracker::new(), http: OnceLock::new(), inside: Mutex::default() }
    }

    fn http(&self) -> Result<reqwest::Client, Failure> {
        let client = self.http.get_or_init(|| transport::client().map_err(|error| error.to_string()));
        client.clone().map_err(Failure::Unreachable)
    }

    /// `era` is the one that worked the last time. Returns the one that works.
    pub async fn open(
        &self,
        server: &Server,
        health: &Arc<Health>,
        era: Option<Era>,
    ) -> Result<(Connection, Era), Failure> {
        let handler = Handler::new(Arc::clone(health));
        let startup = server.config.startup_timeout.unwrap_or(self.settings.startup);
        let greeting = Greeting { tools: self, server, health, handler: handler.clone(), startup };
        let (opened, era) = match &server.config.transport {
            Transport::Stdio { .. } => greeting.stdio(era.unwrap_or(self.settings.stdio_era)).await?,
            Transport::Sse { .. } => (greeting.sse().await?, Era::Legacy),
            Transport::Http { url, .. } if url.starts_with(INSIDE) => (greeting.inside(url).await?, Era::Legacy),
            Transport::Http { .. } => (greeting.http().await?, Era::Modern),
        };
        let Opened { mut service, ending, process_id, stderr } = opened;
        let peered = match peered(&service) {
            Ok(peered) => peered,
            Err(failure) => {
                drop(service.close_with_timeout(self.settings.close).await);
                return Err(failure);
            }
        };
        let connection = Connection {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            handler,
            ending,
            peered,
            started: Instant::now(),
            process_id,
            stderr,
            chores: self.chores.clone(),
            asking: AsyncMutex::new(()),
            listing: Mutex::new(None),
        };
        Ok((connection, era))
    }
}

struct Greeting<'a> {
    tools: &'a Tools,
    server: &'a Server,
    health: &'a Arc<Health>,
    handler: Handler,
    startup: Duration,
}

struct Opened {
    service: Service,
    ending: Ending,
    process_id: Option<i32>,
    stderr: Option<Stderr>,
}

impl Greeting<'_> {
    async fn stdio(&self, first: Era) -> Result<(Opened, Era), Failure> {
        let begin = Instant::now();
        let second = match first {
            Era::Legacy => Era::Modern,
            Era::Modern => Era::Legacy,
        };
        // One that passes over what it does not know leaves the newer greeting without an answer.
        let patience = if first == Era::Modern { self.startup / 2 } else { self.startup };
        match self.stdio_in(first, patience).await {
            Ok(opened) => Ok((opened, first)),
            // Only what a server answers that does not know this greeting; one that crashes is not started twice.
            Err((failure, true)) => {
                tracing::debug!(server = self.server.name, %failure, ?second, "greeting an MCP server in the other way");
                let left = self.startup.saturating_sub(begin.elapsed());
                match self.stdio_in(second, left).await {
                    Ok(opened) => Ok((opened, second)),
                    // The answer to the usual greeting says more.
                    Err((other, _)) if first == Era::Modern => Err(other),
                    Err(_) => Err(failure),
                }
            }
            Err((failure, false)) => Err(failure),
        }
    }

    /// With a failure: whether the other way of greeting may work.
    async fn stdio_in(&self, era: Era, patience: Duration) -> Result<Opened, (Failure, bool)> {
        let settings = &self.tools.settings;
        let command = command(&self.server.config, settings).map_err(|reason| (Failure::Start(reason), false))?;
        let started = self.tools.supervisor.start(command).await;
        let child = started.map_err(|error| (Failure::Start(chain(&error)), false))?;
        let ending = Ending::default();
        let stdio = Stdio::new(child, Arc::clone(self.health), ending.clone(), settings.close);
        let (process_id, stderr) = (Some(stdio.process_id()), stdio.stderr());
        let mode = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        };
        match timeout(patience, self.handler.clone().serve_with_lifecycle(stdio, mode)).await {
            Ok(Ok(service)) => Ok(Opened { service, ending, process_id, stderr: Some(stderr) }),
            Ok(Err(error)) => Err((self.refusal(&error, &ending), is_answer(&error))),
            Err(_) => {
                let words = transport::last_words(&stderr).map(|words| format!("; its last words: {words}"));
                let timeout = self.timeout(patience, words.unwrap_or_default());
                Err((timeout, era == Era::Modern))
            }
        }
    }

    async fn sse(&self) -> Result<Opened, Failure> {
        let Transport::Sse { url, headers } = &self.server.config.transport else {
            return Err(Failure::Start("it is no SSE server".to_owned()));
        };
        let client = self.tools.http()?;
        let ending = Ending::default();
        let greet = async {
            let connected = Sse::connect(client, url, headers, Arc::clone(self.health), ending.clone()).await;
            let sse = connected.map_err(|error| match error {
                transport::ConnectError::Status(status) if matches!(status.as_u16(), 401 | 403) => {
                    Failure::Unauthorized { reason: error.to_string(), challenge: None }
                }
                _ => Failure::Unreachable(chain(&error)),
            })?;
            let mode = ClientLifecycleMode::Initialize;
            let service = self.handler.clone().serve_with_lifecycle(sse, mode).await;
            service.map_err(|error| self.refusal(&error, &ending))
        };
        let service = timeout(self.startup, greet).await.map_err(|_| self.timeout(self.startup, String::new()))??;
        Ok(Opened { service, ending, process_id: None, stderr: None })
    }

    async fn http(&self) -> Result<Opened, Failure> {
        let Transport::Http { url, headers } = &self.server.config.transport else {
            return Err(Failure::Start("it is no HTTP server".to_owned()));
        };
        let (client, begin) = (self.tools.http()?, Instant::now());
        let ending = Ending::default();
        let greet = async |mode: ClientLifecycleMode| {
            let http = transport::streamable(client.clone(), url, headers)
                .map_err(|reason| (Failure::Unreachable(reason), false))?;
            let left = self.startup.saturating_sub(begin.elapsed());
            match timeout(left, self.handler.clone().serve_with_lifecycle(http, mode)).await {
                Ok(greeted) => greeted.map_err(|error| (self.refusal(&error, &ending), is_answer(&error))),
                Err(_) => Err((self.timeout(self.startup, String::new()), false)),
            }
        };
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let service = match greet(auto).await {
            Ok(service) => service,
            // Some answer everything with something; rmcp falls back only after an error.
            Err((_, true)) => greet(ClientLifecycleMode::Initialize).await.map_err(|(failure, _)| failure)?,
            Err((failure, false)) => return Err(failure),
        };
        self.subscribe(&service);
        Ok(Opened { service, ending, process_id: None, stderr: None })
    }

    async fn inside(&self, url: &str) -> Result<Opened, Failure> {
        let name = url.strip_prefix(INSIDE).unwrap_or_default();
        let found = self.tools.inside.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let server =
            found.ok_or_else(|| Failure::Start("there is none of this name inside of Greenroom".to_owned()))?;
        let ending = Ending::default();
        let greet = self.handler.clone().serve_with_lifecycle(InProcess::new(server), ClientLifecycleMode::Initialize);
        let greeted = timeout(self.startup, greet).await.map_err(|_| self.timeout(self.startup, String::new()))?;
        let service = greeted.map_err(|error| self.refusal(&error, &ending))?;
        Ok(Opened { service, ending, process_id: None, stderr: None })
    }

    /// From 2026-07-28 on word of a change comes only to those who asked for it.
    fn subscribe(&self, service: &Service) {
        let peer = service.peer().clone();
        let Some(info) = peer.peer_info() else { return };
        let tells = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or_default();
        if info.protocol_version.has_initialize() || !tells {
            return;
        }
        let handler = self.handler.clone();
        self.tools.chores.spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match peer.listen(filter).await {
                Ok(mut changes) => {
                    while let Ok(Some(_)) = changes.next().await {
                        handler.note_change();
                    }
                }
                Err(error) => tracing::debug!(%error, "an MCP server does not tell of changes"),
            }
        });
    }

    fn timeout(&self, after: Duration, detail: String) -> Failure {
        Failure::Timeout { what: "greet", after, detail }
    }

    fn refusal(&self, error: &ClientInitializeError, ending: &Ending) -> Failure {
        let url = match &self.server.config.transport {
            Transport::Http { url, .. } | Transport::Sse { url, .. } => url,
            Transport::Stdio { .. } => "",
        };
        // An address may have a key in it.
        let hide = |text: String| if url.is_empty() { text } else { text.replace(url, &public_part(url)) };
        let refused = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback.as_ref(),
            other => other,
        };
        match refused {
            ClientInitializeError::TransportError { error, .. } => {
                let source = error.error.as_ref();
                match ending.get() {
                    Some(reason) => Failure::Start(reason.to_owned()),
                    None => unauthorized(source).unwrap_or_else(|| Failure::Unreachable(hide(chain(source)))),
                }
            }
            ClientInitializeError::ConnectionClosed(_) => {
                Failure::Start(ending.get().unwrap_or("it closed the connection without a word").to_owned())
            }
            ClientInitializeError::JsonRpcError(error) => {
                Failure::Handshake(format!("error {}: {}", error.code.0, error.message))
            }
            other => Failure::Handshake(hide(other.to_string().chars().take(500).collect())),
        }
    }
}

/// What a server says that does not know this greeting.
fn is_answer(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
    )
}

fn peered(service: &Service) -> Result<Peered, Failure> {
    let Some(info) = service.peer().peer_info() else {
        return Err(Failure::Handshake("it did not say who it is".to_owned()));
    };
    let version = info.protocol_version.as_str();
    if !VERSIONS.contains(&version) {
        return Err(Failure::Version { version: version.chars().take(50).collect(), known: VERSIONS.join(", ") });
    }
    Ok(Peered {
        protocol_version: version.to_owned(),
        server: info.server_info.as_ref().map(Identity::from),
        instructions: info.instructions.clone().filter(|words| !words.is_empty()),
    })
}

/// What to start: the environment is what the settings give to all and the config to this one.
fn command(config: &ServerConfig, settings: &Settings) -> Result<Command, String> {
    let Transport::Stdio { command, args, env } = &config.transport else {
        return Err("it is not a program".to_owned());
    };
    let folder = settings.folder.join(config.folder.as_deref().unwrap_or(Path::new("")));
    let mut program = PathBuf::from(command);
    if program.components().count() > 1 {
        program = folder.join(program);
    }
    let mut environment = settings.environment.clone();
    environment.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
    Ok(Command { program, args: args.iter().map(Into::into).collect(), env: environment, folder })
}

/// Whether an HTTP server refused because of who asks.
pub fn unauthorized(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let challenge =
            match (inner.downcast_ref::<AuthRequiredError>(), inner.downcast_ref::<InsufficientScopeError>()) {
                (Some(required), _) => Some(&required.www_authenticate_header),
                (_, Some(scope)) => Some(&scope.www_authenticate_header),
                _ => None,
            };
        let status = inner.downcast_ref::<HttpStatusError>().map(|error| error.status);
        if challenge.is_some() || matches!(status, Some(401 | 403)) {
            let reason = inner.to_string().chars().take(500).collect();
            return Some(Failure::Unauthorized { reason, challenge: challenge.cloned() });
        }
        cause = inner.source();
    }
    None
}

/// An error with its causes, each once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}
