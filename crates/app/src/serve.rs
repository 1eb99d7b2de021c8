//! Opens the store, starts the engine and the HTTP server, and stops them in order.
//!
//! Everything that lives as long as the server is started here.

use crate::{
    agent_sandbox::{self, MachineLauncher},
    cli::{doctor, version},
    config::{AppConfig, DatabaseSetting, NodeRole, TlsSetting},
    data_folder::{self, PreparedFolder},
    gauges,
    machine_sandboxes::MachineSandboxes,
    provider_setup,
    recorded_launcher::RecordedLauncher,
    sign_in, test_hooks,
    tls::{self, CertificateFingerprint},
    traces::TraceExport,
};
use anyhow::Context as _;
use domain::{actor::Actor, agent::AgentSpec, name::Name, owner::Owner};
use engine::{Engine, EngineError, Eraser, SearchIndexer, Worker};
use providers::AgentSandboxes;
use server::{Encryption, ServerSockets, auth::token::TokenSecret};
use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use store::{Backend, Store, StoreAccess};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use workbench::{
    process::{Launcher, Supervisor},
    project_commands::ProjectCommands,
    project_files::ProjectStorage,
    sandboxes::Sandboxes,
};

/// From the start of a request to the head of its response.
const REQUEST_DEADLINE: Duration = Duration::from_secs(60);
/// How long a request head may take to arrive, and how long an idle connection is kept.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a provider may take to stop a turn gracefully.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Keepers kill their programs at once; this allows for an overloaded machine.
const PROGRAMS_STOP: Duration = Duration::from_secs(3);
/// How long the store may take to flush and close.
const STORE_FLUSH: Duration = Duration::from_secs(5);

/// Serves until SIGINT or SIGTERM. A second signal ends the process at once, which loses no stored data.
pub async fn run(config: AppConfig, no_open: bool) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut server = RunningServer::start(&config).await?;
    announce(&server, &config, no_open)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        failed = server.failed() => return Err(failed),
    }
    tracing::info!("stopping; send the signal again to stop at once");
    tokio::select! {
        () = server.stop() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Programs that start the server read the first line; the others are for people. In one write, because such a program
/// may stop reading after the first.
fn announce(server: &RunningServer, config: &AppConfig, no_open: bool) -> anyhow::Result<()> {
    let (address, is_web) = (server.address, config.server.role.serves_clients());
    let needs_link = is_web && !config.server.no_auth;
    let is_logged = sign_in::is_output_logged(config);
    let link = if needs_link && !is_logged { Some(server.sign_in_link()?) } else { None };
    let another = format!(
        "greenroom auth link --server {} --data-dir {}",
        sign_in::local_url(address, &config.tls),
        config.store.data_dir.display()
    );
    let mut text = format!(
        "Greenroom is listening on {}\n\
         \x20 version      {}\n\
         \x20 data folder  {}\n",
        server.url(),
        version::current(),
        config.store.data_dir.display(),
    );
    text += &encryption_lines(server, config);
    if let Some(link) = &link {
        text += &format!("  sign in      {link}\n               works once, for 10 minutes; another: {another}\n");
    }
    if needs_link && is_logged {
        text += &format!("  sign in      by a link, which does not belong into the journal: {another}\n");
    }
    if server.is_upgraded && needs_link {
        text += "  new          every request needs a credential now, on this machine too: browsers sign in by the link,\n\
                 \x20              the command line uses the key in the data folder, scripts send what\n\
                 \x20              `greenroom auth header` prints, other programs need a token (greenroom token create)\n";
    }
    if config.server.no_auth {
        text += "  WARNING      --no-auth: every program and every user of this machine is the operator, and can run\n\
                 \x20              commands as the user of this server; so can the agents' own programs\n";
    }
    text += &match &server.sandboxes {
        AgentSandboxes::Outside if config.server.role.executes_runs() => {
            "  WARNING      sandbox.agents is \"none\": programs of agents have all rights of the user of this server\n"
                .to_owned()
        }
        AgentSandboxes::Refused(advice) => format!("  WARNING      {advice}\n"),
        AgentSandboxes::Outside | AgentSandboxes::Inside(_) => String::new(),
    };
    text += match (config.server.role, &link) {
        (NodeRole::Worker, _) => "  next         this worker executes runs, and serves no clients; Ctrl-C stops it\n",
        (NodeRole::All | NodeRole::Web, Some(_)) => {
            "  next         open the link in a browser; Ctrl-C stops the server\n"
        }
        (NodeRole::All | NodeRole::Web, None) if config.server.no_auth => {
            "  next         open the address in a browser; Ctrl-C stops the server\n"
        }
        (NodeRole::All | NodeRole::Web, None) => "  next         make a link with that command\n",
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    if let Some(link) = link
        && !no_open
        && sign_in::has_desktop(config)
        && let Err(error) = sign_in::open(config, &link)
    {
        tracing::warn!(%error, "could not open a browser; open the printed link yourself");
    }
    Ok(())
}

/// What clients have to know about TLS.
fn encryption_lines(server: &RunningServer, config: &AppConfig) -> String {
    match &server.encryption {
        Encryption::Tls(tls) => {
            let sha256 = CertificateFingerprint(tls.certificate().sha256());
            let mut text = format!("  certificate  SHA-256 {sha256}\n");
            if config.tls == TlsSetting::SelfSigned {
                text += &format!(
                    "               self-signed: browsers warn, compare the fingerprint there; commands on other machines\n\
                     \x20              take --fingerprint SHA256, or --ca with a copy of {}\n",
                    tls::self_signed_files(&config.store.data_dir).0.display()
                );
            }
            text
        }
        Encryption::Proxy if !server.address.ip().to_canonical().is_loopback() => {
            "  WARNING      --behind-tls-proxy: this address speaks plain http; make sure that only the proxy reaches it\n"
                .to_owned()
        }
        Encryption::Proxy | Encryption::None => String::new(),
    }
}

/// A running server.
pub struct RunningServer {
    pub address: SocketAddr,
    encryption: Encryption,
    /// Whether the data folder was used by a version without a local key.
    pub is_upgraded: bool,
    local_key: TokenSecret,
    config: AppConfig,
    certificate_watch: JoinSet<()>,
    app: server::App,
    store: Store,
    store_tasks: JoinSet<()>,
    store_cancel: CancellationToken,
    engine: Engine,
    sandboxes: AgentSandboxes,
    supervisor: Supervisor,
    worker: JoinSet<()>,
    worker_cancel: CancellationToken,
    http_server: JoinSet<Result<(), server::HttpServerError>>,
    http_cancel: CancellationToken,
    traces: TraceExport,
}

impl RunningServer {
    pub async fn start(config: &AppConfig) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.server.listen)
            .await
            .with_context(|| format!("cannot listen on {}; is another server running there?", config.server.listen))?;
        let address = listener.local_addr()?;
        let (store_cancel, worker_cancel, http_cancel) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let mut store_tasks = JoinSet::new();
        let supervisor = Supervisor::new(config.keeper.clone());
        server::auth::refuse_open_bind(address, config.server.no_auth).map_err(anyhow::Error::msg)?;
        let is_encrypted = config.tls != TlsSetting::Off || config.server.behind_tls_proxy;
        server::auth::refuse_plain_bind(address, is_encrypted).map_err(anyhow::Error::msg)?;
        let PreparedFolder { key: local_key, is_upgraded } = data_folder::prepare(config)?;
        let encryption = tls::load(config, address)?;
        let sockets = sockets(listener, &encryption).await?;
        let host_tools_address = sockets.host_tools.as_ref().unwrap_or(&sockets.clients).local_addr()?;
        let store = Store::open(&store_config(config)?, StoreAccess::Server, &mut store_tasks, &store_cancel).await?;
        let machine = Arc::new(MachineSandboxes::new(config));
        let sandboxes = agent_sandbox::choose(config, &machine).await;
        let launcher = MachineLauncher {
            machine: Arc::clone(&machine),
            supervisor: supervisor.clone(),
            search_path: agent_sandbox::search_path(config),
        };
        let launcher = RecordedLauncher { launcher: Arc::new(launcher), store: store.clone() };
        let mcp = provider_setup::mcp_manager(config, launcher.clone())?;
        let launcher: Arc<dyn Launcher> = Arc::new(launcher);
        let providers = provider_setup::registry(config, &launcher, &mcp, host_tools_address, sandboxes.clone());
        let engine = Engine::new(store.clone(), providers, mcp, engine_config(config, &machine)?);
        create_first_agent(&store, &engine).await?;
        engine.sweep_uploads().await;
        let worker = config.server.role.executes_runs().then(|| Worker::new(engine.clone()));
        if let Some(worker) = &worker {
            // Before the HTTP server starts, so that clients never see an unfinished run without a worker.
            worker.recover_at_start().await?;
        }
        let examine = doctor::server_checks(config, &store, &engine, address);
        let app = server::AppState::new(
            server_config(config, address, &local_key, encryption.clone())?,
            engine.clone(),
            examine,
            http_cancel.clone(),
        )?;
        agent_sandbox::connect(&machine, &app, config).await;
        let mut http_server = JoinSet::new();
        http_server.spawn(server::serve(Arc::clone(&app), sockets));
        // Only now, when the database's lock shows that no other server uses the folder.
        tls::publish(config, &encryption)?;
        let mut certificate_watch = JoinSet::new();
        if let Some(tls) = encryption.tls() {
            certificate_watch.spawn(tls::watch(config.clone(), address, tls.clone(), http_cancel.clone()));
        }
        let traces = TraceExport::start(&config.environment)?;
        let mut workers = JoinSet::new();
        workers.spawn(gauges::update(store.clone(), supervisor.clone(), worker_cancel.clone()));
        workers.spawn(Eraser::new(engine.clone()).run(worker_cancel.clone()));
        workers.spawn(SearchIndexer::new(engine.clone()).run(worker_cancel.clone()));
        if let Some(worker) = worker {
            let (supervisor, cancel) = (supervisor.clone(), worker_cancel.clone());
            workers.spawn(async move {
                // Clients need not wait for this, but runs must: a leftover program may use the same folder.
                end_leftover_processes(supervisor).await;
                worker.run(cancel).await;
            });
        }
        Ok(Self {
            address,
            encryption,
            is_upgraded,
            local_key,
            config: config.clone(),
            certificate_watch,
            app,
            store,
            store_tasks,
            store_cancel,
            engine,
            sandboxes,
            supervisor,
            worker: workers,
            worker_cancel,
            http_server,
            http_cancel,
            traces,
        })
    }

    /// The key that makes its holder the operator.
    pub fn local_key(&self) -> &str {
        self.local_key.reveal()
    }

    /// A link that signs one browser of this machine in.
    pub fn sign_in_link(&self) -> anyhow::Result<String> {
        let code = self.app.authenticator.sign_in_links().create()?;
        Ok(server::http::session::sign_in_url(&sign_in::browser_url(&self.config, self.address), code.reveal()))
    }

    /// The address that clients use.
    pub fn url(&self) -> String {
        let scheme = if self.encryption.tls().is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Waits until a part of the server that must not end has ended.
    pub async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            Some(ended) = self.http_server.join_next() => match ended {
                Ok(Err(error)) => error.into(),
                Ok(Ok(())) => anyhow::anyhow!("the HTTP server stopped unexpectedly"),
                Err(error) => error.into(),
            },
            Some(_) = self.worker.join_next() => anyhow::anyhow!("the worker, the eraser or the indexer stopped unexpectedly"),
            Some(_) = self.store_tasks.join_next() => anyhow::anyhow!("the journal's writer stopped unexpectedly"),
        }
    }

    /// First interrupts the runs and stores their text, while clients can still read; then ends idle programs, the HTTP
    /// server and the store.
    pub async fn stop(mut self) {
        self.worker_cancel.cancel();
        while self.worker.join_next().await.is_some() {}
        self.engine.close().await;
        if tokio::time::timeout(PROGRAMS_STOP, self.supervisor.wait_until_all_ended()).await.is_err() {
            tracing::warn!("some programs have not ended yet; their keepers are still killing them");
        }
        self.http_cancel.cancel();
        while self.http_server.join_next().await.is_some() {}
        while self.certificate_watch.join_next().await.is_some() {}
        self.traces.shut_down().await;
        self.store_cancel.cancel();
        let flush = async {
            while self.store_tasks.join_next().await.is_some() {}
            self.store.close().await;
        };
        if tokio::time::timeout(STORE_FLUSH, flush).await.is_err() {
            tracing::warn!("the database did not close in time");
        }
        tracing::info!("stopped");
    }
}

/// The sockets of the server. With TLS, its agents' programs get one of their own: see [`ServerSockets`].
async fn sockets(clients: TcpListener, encryption: &Encryption) -> anyhow::Result<ServerSockets> {
    let host_tools = match encryption {
        Encryption::Tls(_) => {
            Some(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on 127.0.0.1")?)
        }
        Encryption::Proxy | Encryption::None => None,
    };
    Ok(ServerSockets { clients, host_tools })
}

/// Ends programs of an earlier server that was killed together with its keepers. Runs on a blocking thread, because it
/// reads the process table.
async fn end_leftover_processes(supervisor: Supervisor) {
    match tokio::task::spawn_blocking(move || supervisor.end_abandoned()).await {
        Ok(0) => {}
        Ok(ended) => tracing::warn!(ended, "ended leftover processes of an earlier server"),
        Err(error) => tracing::error!(%error, "could not search for processes of an earlier server"),
    }
}

/// The store's part of the configuration. Commands that open the store directly use it too.
pub fn store_config(config: &AppConfig) -> anyhow::Result<store::StoreConfig> {
    let backend = match &config.store.database {
        DatabaseSetting::Sqlite { path } => Backend::Sqlite { file: path.clone() },
        DatabaseSetting::Postgres { url } => Backend::Postgres { url: url.expose().to_owned() },
    };
    Ok(store::StoreConfig {
        backend,
        read_connections: config.store.read_connections,
        tail_bytes: config.store.tail_bytes,
        secrets_file: config.store.secrets_key_file.clone(),
        planted_bug: test_hooks::planted_bug()?,
    })
}

fn engine_config(config: &AppConfig, machine: &Arc<MachineSandboxes>) -> anyhow::Result<engine::EngineConfig> {
    let sandboxes: Arc<dyn Sandboxes> = Arc::<MachineSandboxes>::clone(machine);
    let projects = engine::ProjectServices {
        per_workspace: config.limits.projects,
        storage: Arc::new(ProjectStorage::new(config.projects.ceilings, config.projects.free_bytes)),
        commands: ProjectCommands::new(Arc::clone(&sandboxes), config.limits.commands),
        sandboxes,
    };
    Ok(engine::EngineConfig {
        concurrency: config.runs.concurrency,
        concurrency_per_workspace: config.runs.concurrency_per_workspace,
        unfinished_runs_per_workspace: config.runs.unfinished_per_workspace,
        workspace_limits: config.limits.workspace,
        lease: config.runs.lease,
        erase_after: config.store.erase_after,
        limits: config.runs.limits,
        stop_grace: STOP_GRACE,
        folders: engine::Folders {
            data: config.store.data_dir.clone(),
            shared_workspace: config.agents.workspace.clone(),
        },
        mcp_servers: provider_setup::mcp_servers(config)?,
        mcp_variables: provider_setup::mcp_variables(config),
        host_tools: provider_setup::host_tools(&projects)?,
        projects,
    })
}

fn server_config(
    config: &AppConfig,
    address: SocketAddr,
    local_key: &TokenSecret,
    encryption: Encryption,
) -> anyhow::Result<server::HttpServerConfig> {
    Ok(server::HttpServerConfig {
        listen: address,
        encryption,
        auth: server::auth::AuthSettings { local_key_sha256: local_key.sha256(), no_auth: config.server.no_auth },
        public_hosts: config.server.public_hosts.clone(),
        preview_domain: config.server.preview_domain.clone(),
        cors: server::auth::CorsSettings {
            origins: config.server.cors_origins.clone(),
            credentials: config.server.cors_credentials,
        },
        max_body_bytes: config.server.body_bytes,
        max_connections: config.server.max_connections,
        max_connections_per_address: config.server.max_connections_per_address,
        trusted_proxies: config.server.trusted_proxies.clone(),
        requests_per_second: config.limits.requests_per_second,
        request_burst: config.limits.burst,
        shares: config.limits.user,
        socket_messages_per_second: config.limits.socket_messages_per_second,
        socket_message_burst: config.limits.socket_message_burst,
        request_deadline: REQUEST_DEADLINE,
        header_read_timeout: HEADER_READ_TIMEOUT,
        heartbeat: config.feed.heartbeat,
        write_stall: config.feed.stall,
        stop_deadline: config.server.shutdown,
        mcp_session_idle: config.mcp_server.session_idle,
        mcp_max_sessions: config.mcp_server.max_sessions,
        mcp_max_sessions_per_user: config.mcp_server.max_sessions_per_user,
        mcp_handler: test_hooks::mcp_handler()?,
        routes: match config.server.role.serves_clients() {
            true => server::RouteSet::All,
            false => server::RouteSet::Worker,
        },
    })
}

/// Creates an agent in a fresh store. It is not created again after it was deleted.
async fn create_first_agent(store: &Store, engine: &Engine) -> anyhow::Result<()> {
    if !store.is_fresh().await? {
        return Ok(());
    }
    let spec = AgentSpec::new(Name::parse("scripted")?, "scripted");
    match engine.create_agent(&Actor::system(Owner::local()), spec, None).await {
        Ok(_) | Err(EngineError::Conflict(_)) => Ok(store.mark_used().await?),
        Err(error) => Err(error.into()),
    }
}
