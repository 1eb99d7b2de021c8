//! Opens sandboxes on this machine.

use super::{cgroup::DelegatedCgroup, host_user, sandbox::LocalSandbox, start};
use crate::{
    command::{CommandIo, CommandSpec},
    driver::{ProjectSandbox, SandboxDriver, SandboxError, SandboxFuture},
    isolation::{Isolation, IsolationTier},
    policy::SandboxPolicy,
    protocol::{HelperStart, SetupStep},
};
use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, chown},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// One per server and tier.
pub struct LocalDriver {
    tier: IsolationTier,
    helper: PathBuf,
    scratch: PathBuf,
    host_user: Option<u32>,
    cgroup: Option<DelegatedCgroup>,
    user_namespaces: OnceLock<bool>,
    tasks: TaskTracker,
}

impl LocalDriver {
    /// `helper` is a binary that calls [`crate::helper_main`]: our own, best as `/proc/self/exe`, which stays the same when
    /// the file is replaced. Folders for trial runs are created in `scratch`.
    pub fn new(tier: IsolationTier, helper: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            tier,
            helper: helper.into(),
            scratch: scratch.into(),
            host_user: host_user::choose(),
            cgroup: DelegatedCgroup::find(),
            user_namespaces: OnceLock::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Behaves as on a machine where root may create all namespaces but those of users.
    pub fn without_user_namespaces(self) -> Self {
        Self { user_namespaces: OnceLock::from(false), ..self }
    }

    /// The user that commands run as, if it is not the server's.
    pub fn host_user(&self) -> Option<u32> {
        self.host_user.filter(|_| self.tier != IsolationTier::None)
    }

    /// Creates a folder that commands of a sandbox can write in and others cannot read.
    pub fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(true).create(path)?;
        self.host_user().map_or(Ok(()), |user| chown(path, Some(user), Some(user)))
    }

    /// Waits until all sandboxes have ended. Stop or drop them first.
    pub async fn wait_until_all_ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub async fn start_sandbox(&self, policy: SandboxPolicy) -> Result<LocalSandbox, SandboxError> {
        let with_users = self.tier == IsolationTier::Native && *self.user_namespaces.get().unwrap_or(&true);
        match self.open_with(&policy, with_users).await {
            // Root needs no user namespace, and where they are forbidden it does without.
            Err(SandboxError::Setup { failure, .. })
                if with_users
                    && self.host_user.is_some()
                    && matches!(failure.step, SetupStep::Namespaces | SetupStep::IdMap | SetupStep::Proc) =>
            {
                let opened = self.open_with(&policy, false).await?;
                self.user_namespaces.get_or_init(|| false);
                Ok(opened)
            }
            other => other,
        }
    }

    async fn open_with(&self, policy: &SandboxPolicy, user_namespace: bool) -> Result<LocalSandbox, SandboxError> {
        if self.tier == IsolationTier::Docker {
            return Err(SandboxError::Unsuitable("Docker needs a driver of its own".to_owned()));
        }
        let cgroup = self.cgroup.as_ref().map(|delegated| delegated.create(&policy.limits)).transpose();
        let cgroup = cgroup.map_err(SandboxError::Helper)?;
        let start = HelperStart {
            tier: self.tier,
            policy: policy.clone(),
            user_namespace,
            host_user: self.host_user(),
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()),
        };
        let helper = start::start(&self.helper, &start, cgroup).await?;
        let isolation = Isolation::of(self.tier, &helper.facts);
        Ok(LocalSandbox::new(helper, isolation, &self.tasks))
    }

    /// The whole set-up, with a command: some systems let namespaces be created and deny what comes after it.
    pub async fn probe(&self) -> Result<Isolation, SandboxError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = self.scratch.join(format!("sandbox-trial-{}-{number}", std::process::id()));
        self.create_folder(&folder).map_err(SandboxError::Helper)?;
        let result = self.try_in(&folder).await;
        fs::remove_dir_all(&folder).map_err(SandboxError::Helper)?;
        result
    }

    async fn try_in(&self, folder: &Path) -> Result<Isolation, SandboxError> {
        let sandbox = self.start_sandbox(SandboxPolicy::new(folder)).await?;
        let null = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
        let (stdin, stdout, stderr) = (null(), null(), null());
        let io = CommandIo {
            stdin: stdin.map_err(SandboxError::Helper)?,
            stdout: stdout.map_err(SandboxError::Helper)?,
            stderr: stderr.map_err(SandboxError::Helper)?,
        };
        let mut command = sandbox.run(CommandSpec::new(["sh", "-c", "echo trial > trial.txt"]), io).await?;
        let exit = timeout(TRIAL_TIMEOUT, crate::SandboxCommand::wait(&mut command)).await;
        let exit = exit.map_err(|_| SandboxError::Timeout { seconds: TRIAL_TIMEOUT.as_secs() })?;
        let isolation = sandbox.isolation().clone();
        sandbox.stop().await?;
        match exit.is_success() {
            true => Ok(isolation),
            false => Err(SandboxError::Unsuitable(format!("the trial command failed ({exit:?})"))),
        }
    }
}

impl SandboxDriver for LocalDriver {
    fn tier(&self) -> IsolationTier {
        self.tier
    }

    fn probe(&self) -> SandboxFuture<'_, Result<Isolation, SandboxError>> {
        Box::pin(self.probe())
    }

    fn start_sandbox(&self, policy: SandboxPolicy) -> SandboxFuture<'_, Result<Arc<dyn ProjectSandbox>, SandboxError>> {
        Box::pin(async { Ok(Arc::new(self.start_sandbox(policy).await?) as Arc<dyn ProjectSandbox>) })
    }
}
