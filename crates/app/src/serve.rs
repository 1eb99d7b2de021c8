//! The wiring: opens the store, starts the engine and the doors, and stops them in order.
//!
//! Everything that lives as long as the server is started here and nowhere else.

use crate::{
    agents,
    cli::doctor,
    config::{Config, Database},
};
use anyhow::Context as _;
use domain::{agent::AgentSpec, name::Name, owner::Owner};
use engine::{Engine, Worker};
use std::{io::Write as _, net::SocketAddr, time::Duration};
use store::{Access, Backend, Store};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use workbench::process::Supervisor;

/// How long a provider may take to stop by itself.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// The keepers kill at once; this is for a machine on its knees.
const PROGRAMS_GONE: Duration = Duration::from_secs(3);
/// Ends first what can be ended at leisure; this is for what hangs.
const STORE_FLUSH: Duration = Duration::from_secs(5);

/// Serves until SIGINT or SIGTERM; a second one ends it on the spot, which loses nothing either.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut server = Running::start(&config).await?;
    announce(server.address)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        failed = server.failed() => return Err(failed),
    }
    tracing::info!("stopping; ask again to stop at once");
    tokio::select! {
        () = server.stop() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// One line on standard output, for people and for programs that start us.
fn announce(address: SocketAddr) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "Greenroom is listening on http://{address}")?;
    out.flush().context("cannot write to standard output")
}

/// A server that is up.
pub struct Running {
    pub address: SocketAddr,
    store: Store,
    store_tasks: JoinSet<()>,
    store_cancel: CancellationToken,
    engine: Engine,
    supervisor: Supervisor,
    worker: JoinSet<()>,
    worker_cancel: CancellationToken,
    doors: JoinSet<Result<(), server::Error>>,
    doors_cancel: CancellationToken,
}

impl Running {
    pub async fn start(config: &Config) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.server.listen)
            .await
            .with_context(|| format!("cannot listen on {}; is another server there?", config.server.listen))?;
        let address = listener.local_addr()?;
        let (store_cancel, worker_cancel, doors_cancel) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let mut store_tasks = JoinSet::new();
        let store = Store::open(&store_config(config)?, Access::Server, &mut store_tasks, &store_cancel).await?;
        server::auth::refuse_open_bind(address, store.accounts_exist().await?).map_err(anyhow::Error::msg)?;
        seat_the_first_agent(&store).await?;

        let supervisor = Supervisor::new(config.keeper.clone());
        end_what_was_left(&supervisor).await;
        let mcp = agents::mcp_manager(config, &supervisor)?;
        let providers = agents::registry(config, &supervisor, &mcp, address);
        let engine = Engine::new(store.clone(), providers, mcp, engine_config(config)?);
        engine.sweep_uploads().await;
        let worker = Worker::new(engine.clone());
        // Before the doors open: nobody is shown a run that nothing drives.
        worker.recover_at_start().await?;
        let examine = doctor::examine(config, &engine, address);
        let app = server::AppState::new(server_config(config, address), engine.clone(), examine, doors_cancel.clone())?;
        let mut doors = JoinSet::new();
        doors.spawn(server::serve(app, listener));
        let mut workers = JoinSet::new();
        workers.spawn(worker.run(worker_cancel.clone()));
        Ok(Self {
            address,
            store,
            store_tasks,
            store_cancel,
            engine,
            supervisor,
            worker: workers,
            worker_cancel,
            doors,
            doors_cancel,
        })
    }

    /// Returns when something that must not end has ended.
    pub async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            Some(ended) = self.doors.join_next() => match ended {
                Ok(Err(error)) => error.into(),
                Ok(Ok(())) => anyhow::anyhow!("the doors closed by themselves"),
                Err(error) => error.into(),
            },
            Some(_) = self.worker.join_next() => anyhow::anyhow!("the worker stopped by itself"),
            Some(_) = self.store_tasks.join_next() => anyhow::anyhow!("the journal's writer stopped by itself"),
        }
    }

    /// Runs are interrupted and their text kept while readers still watch; then idle programs end and the doors close;
    /// then the store.
    pub async fn stop(mut self) {
        self.worker_cancel.cancel();
        while self.worker.join_next().await.is_some() {}
        self.engine.close().await;
        if tokio::time::timeout(PROGRAMS_GONE, self.supervisor.all_gone()).await.is_err() {
            tracing::warn!("some programs have not ended yet; their keepers go on killing them");
        }
        self.doors_cancel.cancel();
        while self.doors.join_next().await.is_some() {}
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

/// A server that was killed together with its keepers may have left programs running. Not for the runtime's own threads:
/// it reads the process table.
async fn end_what_was_left(supervisor: &Supervisor) {
    let supervisor = supervisor.clone();
    match tokio::task::spawn_blocking(move || supervisor.sweep()).await {
        Ok(0) => {}
        Ok(ended) => tracing::warn!(ended, "ended processes that an earlier server had left"),
        Err(error) => tracing::error!(%error, "could not look for processes of an earlier server"),
    }
}

/// What the store needs to know of the configuration; the tools beside the server use it too.
pub fn store_config(config: &Config) -> anyhow::Result<store::Config> {
    let backend = match &config.store.database {
        Database::Sqlite { path } => Backend::Sqlite { file: path.clone() },
        Database::Postgres { url } => Backend::Postgres { url: url.expose().to_owned() },
    };
    Ok(store::Config {
        backend,
        read_connections: config.store.read_connections,
        tail_bytes: config.store.tail_bytes,
        planted: crate::planted::from_environment()?,
    })
}

fn engine_config(config: &Config) -> anyhow::Result<engine::Config> {
    Ok(engine::Config {
        concurrency: config.runs.concurrency,
        lease: config.runs.lease,
        limits: config.runs.limits,
        stop_grace: STOP_GRACE,
        folders: engine::Folders { data: config.store.data_dir.clone(), workspace: config.agents.workspace.clone() },
        mcp_servers: agents::mcp_servers(config)?,
        mcp_variables: agents::mcp_variables(config),
    })
}

fn server_config(config: &Config, address: SocketAddr) -> server::Config {
    server::Config {
        listen: address,
        public_hosts: config.server.public_hosts.clone(),
        max_body_bytes: config.server.body_bytes,
        max_connections: config.server.max_connections,
        requests_per_second: config.limits.requests_per_second,
        request_burst: config.limits.burst,
        heartbeat: config.feed.heartbeat,
        write_stall: config.feed.stall,
        stop_deadline: config.server.shutdown,
        mcp_session_idle: config.mcp_server.session_idle,
        mcp_max_sessions: config.mcp_server.max_sessions,
        ..server::Config::default()
    }
}

/// A fresh store has someone to talk to. Whoever deletes it later does not get it back.
async fn seat_the_first_agent(store: &Store) -> anyhow::Result<()> {
    if !store.is_fresh().await? {
        return Ok(());
    }
    let spec = AgentSpec::new(Name::parse("scripted")?, "scripted");
    match store.create_agent(&Owner::local(), spec, None).await {
        Ok(_) | Err(store::Error::NameTaken(_)) => Ok(store.mark_used().await?),
        Err(error) => Err(error.into()),
    }
}
