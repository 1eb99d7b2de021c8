//! The machine around a sandbox: a project, what must not be reached from it, and who runs the server.

use crate::shared::{DriveRequest, DriveResult};
use sandbox::{BindMount, CommandSpec, IsolationTier, SandboxPolicy};
use std::{
    fs,
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{PermissionsExt as _, chown},
            net::{SocketAddr as UnixAddress, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;

/// Where the fixture is inside a sandbox with a root folder of its own.
const GUEST_FIXTURE: &str = "/opt/fixture";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerUser {
    Root,
    RootWithoutUserNamespaces,
    /// A temporary one if the tests run as root, else their own.
    Ordinary,
}

impl ServerUser {
    /// Those that this test can be. `none` is for one user only: what root may do there says nothing.
    pub fn all(tier: IsolationTier) -> Vec<Self> {
        match (nix::unistd::geteuid().is_root(), tier) {
            (true, IsolationTier::Native) => vec![Self::Root, Self::RootWithoutUserNamespaces, Self::Ordinary],
            (true, IsolationTier::Landlock) => vec![Self::Root, Self::Ordinary],
            _ => vec![Self::Ordinary],
        }
    }

    /// `None` is the user of the test itself.
    fn id(self, number: u32) -> Option<u32> {
        // Each scene has a user of its own: a limit of processes counts all those of a user.
        let temporary = || 400_000 + std::process::id() % 1_000_000 * 1000 + number % 1000;
        (self == Self::Ordinary && nix::unistd::geteuid().is_root()).then(temporary)
    }
}

pub struct Scene {
    pub tier: IsolationTier,
    pub user: ServerUser,
    /// The temporary user.
    user_id: Option<u32>,
    /// In a file outside, in the server's environment, and in the command line and environment of the victim.
    pub marker: String,
    folder: TempDir,
    pub on_loopback: TcpListener,
    pub on_all_addresses: TcpListener,
    _abstract_socket: UnixListener,
    _path_socket: UnixListener,
    pub victim: Child,
}

impl Scene {
    pub fn new(tier: IsolationTier, user: ServerUser) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let marker = format!("77{}{number:03}", std::process::id());
        let user_id = user.id(number);
        let folder = tempfile::Builder::new().prefix("greenroom-sandbox-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let abstract_address = UnixAddress::from_abstract_name(&marker).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        let path_socket = UnixListener::bind(folder.path().join("outside/socket")).unwrap();
        fs::set_permissions(folder.path().join("outside/socket"), fs::Permissions::from_mode(0o777)).unwrap();
        // A copy: the folder of the build may be closed for other users. By another program: a process that a test in another
        // thread starts would inherit a file that is open for writing here, and such a file cannot be executed.
        let fixture = folder.path().join("fixture");
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_sandbox-fixture")).arg(fixture).status().unwrap();
        assert!(copied.success());
        let mut victim = Command::new("sleep");
        victim.arg(&marker).env("SECRET", &marker).stdout(Stdio::null());
        let scene = Self {
            tier,
            user,
            user_id,
            folder,
            on_loopback: TcpListener::bind("127.0.0.1:0").unwrap(),
            on_all_addresses: TcpListener::bind("0.0.0.0:0").unwrap(),
            _abstract_socket: UnixListener::bind_addr(&abstract_address).unwrap(),
            _path_socket: path_socket,
            victim: as_user(&mut victim, user_id).spawn().unwrap(),
            marker,
        };
        fs::write(scene.outside("secret.txt"), &scene.marker).unwrap();
        fs::create_dir(scene.project()).unwrap();
        scene.give_to_users();
        scene
    }

    fn give_to_users(&self) {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let server = self.user_id.unwrap_or(0);
        for path in [self.outside(""), self.outside("secret.txt")] {
            chown(path, Some(server), Some(server)).unwrap();
        }
        let driver = sandbox::LocalDriver::new(self.tier, "", "");
        let owner = self.user_id.or(driver.host_user()).unwrap_or(0);
        chown(self.project(), Some(owner), Some(owner)).unwrap();
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join("outside").join(name)
    }

    /// As text for an argument.
    pub fn secret_file(&self) -> String {
        self.outside("secret.txt").display().to_string()
    }

    pub fn fixture(&self) -> String {
        match self.tier {
            IsolationTier::Native => GUEST_FIXTURE.to_owned(),
            _ => self.folder.path().join("fixture").display().to_string(),
        }
    }

    pub fn attack(&self, name: &str, arguments: &[String]) -> CommandSpec {
        let words = [self.fixture(), "attack".to_owned(), name.to_owned()];
        CommandSpec::new(words.into_iter().chain(arguments.iter().cloned()))
    }

    pub fn shell(&self, script: &str) -> CommandSpec {
        CommandSpec::new(["sh", "-c", script])
    }

    pub fn policy(&self) -> SandboxPolicy {
        let mut policy = SandboxPolicy::new(self.project());
        let source = self.folder.path().join("fixture");
        let target = GUEST_FIXTURE.into();
        policy.programs.push(BindMount { source, target });
        policy
    }

    pub fn request(&self, command: CommandSpec) -> DriveRequest {
        DriveRequest {
            tier: self.tier,
            without_user_namespaces: self.user == ServerUser::RootWithoutUserNamespaces,
            policy: self.policy(),
            command,
            wall_milliseconds: 20_000,
            total_bytes: 8 << 20,
            cancel_after_milliseconds: None,
            leaked_file: None,
        }
    }

    /// A server with this request, not started yet.
    pub fn server(&self, request: &DriveRequest) -> Command {
        let mut server = Command::new(self.folder.path().join("fixture"));
        server.args(["drive", &serde_json::to_string(request).unwrap()]).env_clear().env("SECRET", &self.marker);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        as_user(&mut server, self.user_id);
        server
    }

    pub fn drive(&self, request: &DriveRequest) -> DriveResult {
        let output = self.server(request).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let answer = serde_json::from_slice(&output.stdout);
        answer.unwrap_or_else(|error| panic!("{}: no answer ({error}): {errors}", self.name()))
    }

    pub fn name(&self) -> String {
        format!("{} as {:?}", self.tier.name(), self.user)
    }

    /// An address of this machine that is not loopback, if it has one.
    pub fn machine_address(&self) -> Option<SocketAddr> {
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        // Sends nothing: it only asks for the route.
        socket.connect("192.0.2.1:9").ok()?;
        let address: IpAddr = socket.local_addr().ok()?.ip();
        Some(SocketAddr::new(address, self.on_all_addresses.local_addr().ok()?.port()))
    }

    pub fn victim_is_alive(&mut self) -> bool {
        self.victim.try_wait().unwrap().is_none()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // It may have been killed by a test.
        self.victim.kill().ok();
        self.victim.wait().ok();
    }
}

fn as_user(command: &mut Command, user: Option<u32>) -> &mut Command {
    match user {
        Some(id) => command.uid(id).gid(id),
        None => command,
    }
}

/// The file exists and contains the text.
pub fn has_content(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|content| content.contains(text))
}
