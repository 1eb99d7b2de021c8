//! Ports inside of a sandbox that the server answers: the way out for programs without a network.

use super::SandboxSpec;
use sandbox::{ProjectSandbox, SandboxError};
use std::{pin::Pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub type GuestFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answers connections that programs make to a port of their own loopback.
pub trait GuestService: Send + Sync {
    /// Serves one connection to its end. Dropping the future closes it.
    fn serve(&self, sandbox: Arc<SandboxSpec>, connection: TcpStream) -> GuestFuture;
}

#[derive(Clone)]
pub struct GuestPort {
    pub port: u16,
    pub service: Arc<dyn GuestService>,
}

/// Of one port of one sandbox. Further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// After a failed accept: without free file descriptors it fails until one is closed.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens the ports in a sandbox and serves them until `closed`.
pub async fn open(
    ports: &[GuestPort],
    sandbox: &dyn ProjectSandbox,
    spec: &Arc<SandboxSpec>,
    tasks: &TaskTracker,
    closed: &CancellationToken,
) -> Result<(), SandboxError> {
    for GuestPort { port, service } in ports {
        let listener = sandbox.listen(*port).await?;
        let serving = accept(listener, Arc::clone(service), Arc::clone(spec));
        let closed = closed.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = closed.cancelled() => {}
            }
        });
    }
    Ok(())
}

async fn accept(listener: TcpListener, service: Arc<dyn GuestService>, spec: Arc<SandboxSpec>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this future, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((connection, _)) => {
                let served = service.serve(Arc::clone(&spec), connection);
                connections.spawn(async move {
                    served.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, sandbox = %spec.key, "could not accept a connection from a sandbox");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
