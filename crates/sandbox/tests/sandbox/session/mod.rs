//! One long-lived sandbox, used as a server uses it.

mod commands;
mod ends;
mod sockets;

use crate::scene::{Scene, ServerUser};
use sandbox::{
    CapturedCommand, CommandEnd, CommandExit, CommandIo, CommandSpec, IsolationTier, LocalDriver, LocalSandbox,
    OutputLimits, RunningCommand, SandboxCommand as _,
};
use std::{fs::File, io::pipe};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::unix::pipe::Receiver,
};

/// An open sandbox and the machine around it.
struct Session {
    scene: Scene,
    driver: LocalDriver,
    sandbox: LocalSandbox,
}

/// A command whose output is read line by line.
struct Started {
    command: RunningCommand,
    lines: Lines<BufReader<Receiver>>,
}

impl Session {
    async fn open() -> Self {
        Self::open_in(IsolationTier::Native).await
    }

    async fn open_in(tier: IsolationTier) -> Self {
        let user = match nix::unistd::geteuid().is_root() {
            true => ServerUser::Root,
            false => ServerUser::Ordinary,
        };
        let scene = Scene::new(tier, user);
        let driver = LocalDriver::new(tier, env!("CARGO_BIN_EXE_sandbox-fixture"), scene.outside(""));
        let sandbox = driver.start_sandbox(scene.policy()).await.unwrap();
        Self { scene, driver, sandbox }
    }

    async fn capture(&self, command: CommandSpec) -> CapturedCommand {
        sandbox::capture(&self.sandbox, command, OutputLimits::default()).await.unwrap()
    }

    /// The output of a script that succeeds.
    async fn output(&self, script: &str) -> String {
        let captured = self.capture(self.scene.shell(script)).await;
        assert_eq!(captured.end, CommandEnd::Exited(CommandExit::Code(0)), "{captured:?}");
        captured.stdout.text()
    }

    async fn start(&self, command: CommandSpec) -> Started {
        let (reader, writer) = pipe().unwrap();
        let stderr = writer.try_clone().unwrap().into();
        let io = CommandIo { stdin: File::open("/dev/null").unwrap().into(), stdout: writer.into(), stderr };
        let command = self.sandbox.run(command, io).await.unwrap();
        let lines = BufReader::new(Receiver::from_owned_fd(reader.into()).unwrap()).lines();
        Started { command, lines }
    }

    fn fixture(&self, words: &[&str]) -> CommandSpec {
        CommandSpec::new([self.scene.fixture()].into_iter().chain(words.iter().map(|word| word.to_string())))
    }

    /// A number of seconds that no other test sleeps for.
    fn sleep(&self, digit: u8) -> String {
        format!("sleep {digit}{}", self.scene.marker)
    }

    /// The same as it is in the process list.
    fn sleep_text(&self, digit: u8) -> String {
        self.sleep(digit).replace(' ', "\0")
    }
}

impl Started {
    async fn line(&mut self) -> String {
        self.lines.next_line().await.unwrap().expect("the output has ended")
    }

    async fn wait(&mut self) -> CommandExit {
        self.command.wait().await
    }
}
