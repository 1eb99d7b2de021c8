//! The manager with a driver that only counts. The real driver is tested in `crates/app/tests/it/sandboxed`.

use super::{SandboxKey, SandboxManager, SandboxManagerError, SandboxManagerSettings, SandboxSpec};
use domain::project::ProjectCeilings;
use sandbox::{
    CommandIo, CommandSpec, CommandUsage, Enforcement, Isolation, IsolationTier, ProjectSandbox, SandboxCommand,
    SandboxDriver, SandboxError, SandboxFuture, SandboxPolicy,
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Counts {
    opened: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

struct CountingDriver {
    counts: Arc<Counts>,
}

struct CountedSandbox {
    counts: Arc<Counts>,
    has_ended: AtomicBool,
    isolation: Isolation,
}

fn isolation() -> Isolation {
    let full = Enforcement::Full;
    Isolation {
        tier: IsolationTier::Native,
        file: full,
        network: full,
        process: full,
        memory: full,
        pids: full,
        disk: full,
        warnings: Vec::new(),
    }
}

impl SandboxDriver for CountingDriver {
    fn tier(&self) -> IsolationTier {
        IsolationTier::Native
    }

    fn probe(&self) -> SandboxFuture<'_, Result<Isolation, SandboxError>> {
        Box::pin(async { Ok(isolation()) })
    }

    fn start_sandbox(&self, policy: SandboxPolicy) -> SandboxFuture<'_, Result<Arc<dyn ProjectSandbox>, SandboxError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if policy.workspace.ends_with("broken") {
                return Err(SandboxError::Unsuitable("it is broken".to_owned()));
            }
            self.counts.opened.fetch_add(1, Ordering::SeqCst);
            let open = self.counts.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.counts.most.fetch_max(open, Ordering::SeqCst);
            let counts = Arc::clone(&self.counts);
            Ok(Arc::new(CountedSandbox { counts, has_ended: AtomicBool::new(false), isolation: isolation() }) as _)
        })
    }
}

impl ProjectSandbox for CountedSandbox {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    fn run(&self, _: CommandSpec, _: CommandIo) -> SandboxFuture<'_, Result<Box<dyn SandboxCommand>, SandboxError>> {
        Box::pin(async { Err(SandboxError::Ended) })
    }

    fn list(&self) -> SandboxFuture<'_, Result<Vec<CommandUsage>, SandboxError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn listen(&self, _: u16) -> SandboxFuture<'_, Result<TcpListener, SandboxError>> {
        Box::pin(async { Err(SandboxError::Ended) })
    }

    fn connect(&self, _: u16) -> SandboxFuture<'_, Result<TcpStream, SandboxError>> {
        Box::pin(async { Err(SandboxError::Ended) })
    }

    fn stop(&self) -> SandboxFuture<'_, Result<(), SandboxError>> {
        if !self.has_ended.swap(true, Ordering::SeqCst) {
            self.counts.open.fetch_sub(1, Ordering::SeqCst);
        }
        Box::pin(async { Ok(()) })
    }
}

fn manager(max_open: usize, idle_timeout: Duration) -> (SandboxManager, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let driver = CountingDriver { counts: Arc::clone(&counts) };
    let settings = SandboxManagerSettings {
        programs: Vec::new(),
        host_user: None,
        idle_timeout,
        max_open,
        data: std::env::temp_dir(),
        ceilings: ProjectCeilings::default(),
    };
    (SandboxManager::new(Arc::new(driver), isolation(), settings), counts)
}

fn spec(name: &str) -> SandboxSpec {
    SandboxSpec::new(SandboxKey::new("room", name), Path::new("/w").join(name), std::env::temp_dir())
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn users_of_a_key_share_one_sandbox() {
    let (manager, counts) = manager(8, LONG);
    let wanted = spec("a");
    let (one, two, three) = tokio::join!(manager.open(&wanted), manager.open(&wanted), manager.open(&wanted));
    assert_eq!(counts.opened.load(Ordering::SeqCst), 1);
    drop((one.unwrap(), two.unwrap(), three.unwrap()));
    drop(manager.open(&wanted).await.unwrap());
    assert_eq!(counts.opened.load(Ordering::SeqCst), 1);
    manager.stop(&wanted.key).await;
    assert_eq!((counts.open.load(Ordering::SeqCst), manager.open_keys().len()), (0, 0));
    drop(manager.open(&wanted).await.unwrap());
    assert_eq!(counts.opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_sandbox_with_other_settings_is_opened_again_when_nobody_uses_it() {
    let (manager, counts) = manager(8, LONG);
    let (first, mut second) = (spec("a"), spec("a"));
    second.allowed_hosts = vec!["example.org".to_owned()];
    let used = manager.open(&first).await.unwrap();
    assert_eq!(*manager.open(&second).await.unwrap().spec(), first, "it is in use");
    drop(used);
    assert_eq!(*manager.open(&second).await.unwrap().spec(), second);
    assert_eq!((counts.opened.load(Ordering::SeqCst), counts.open.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn invariant_14_limits_the_idlest_sandbox_stops_when_all_places_are_taken() {
    let (manager, counts) = manager(2, LONG);
    let used = manager.open(&spec("a")).await.unwrap();
    drop(manager.open(&spec("b")).await.unwrap());
    let third = manager.open(&spec("c")).await.unwrap();
    let mut keys = manager.open_keys();
    keys.sort();
    assert_eq!(keys, [SandboxKey::new("room", "a"), SandboxKey::new("room", "c")]);
    let full = manager.open(&spec("d")).await.err().unwrap();
    assert!(matches!(full, SandboxManagerError::Full(2)), "{full}");
    drop((used, third));
    drop(manager.open(&spec("d")).await.unwrap());
    assert_eq!(counts.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_idle_sandbox_stops_and_comes_back() {
    let (manager, counts) = manager(8, Duration::from_millis(40));
    let used = manager.open(&spec("a")).await.unwrap();
    drop(manager.open(&spec("b")).await.unwrap());
    let stopped = async {
        while manager.open_keys().len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), stopped).await.unwrap();
    assert_eq!(manager.open_keys(), [SandboxKey::new("room", "a")], "the one in use stays");
    drop(used);
    drop(manager.open(&spec("b")).await.unwrap());
    assert_eq!(counts.opened.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_failed_open_takes_no_place_and_a_closed_manager_opens_nothing() {
    let (manager, counts) = manager(1, LONG);
    for _ in 0..3 {
        let error = manager.open(&spec("broken")).await.err().unwrap();
        assert!(error.to_string().contains("it is broken"), "{error}");
    }
    let used = manager.open(&spec("a")).await.unwrap();
    manager.close().await;
    assert_eq!(counts.open.load(Ordering::SeqCst), 0);
    assert!(matches!(manager.open(&spec("a")).await, Err(SandboxManagerError::Closing)));
    drop(used);
}
