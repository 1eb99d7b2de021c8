//! What a sandbox costs: `cargo run --release -p sandbox --example measure`.

use sandbox::{CommandIo, CommandSpec, IsolationTier, LocalDriver, SandboxCommand as _, SandboxError, SandboxPolicy};
use std::{
    error::Error,
    fs::File,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 200;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(sandbox::HELPER_SUBCOMMAND) {
        return sandbox::helper_main();
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(format!("/tmp/greenroom-measure-{}", std::process::id()));
    let driver = LocalDriver::new(IsolationTier::Native, "/proc/self/exe", &folder);
    driver.create_folder(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(rounds(&driver, &folder));
    std::fs::remove_dir_all(&folder)?;
    let (starts, mut inside, mut plain) = result?;
    print("start of a sandbox", starts);
    let ratio = inside.1.as_secs_f64() / plain.1.as_secs_f64();
    print("command in a sandbox", std::mem::take(&mut inside.0));
    print("plain spawn", std::mem::take(&mut plain.0));
    println!("a command in a running sandbox takes {ratio:.2} times as long (median)");
    Ok(())
}

type Timings = (Vec<Duration>, Duration);

async fn rounds(driver: &LocalDriver, folder: &PathBuf) -> Result<(Vec<Duration>, Timings, Timings), Box<dyn Error>> {
    let mut starts = Vec::new();
    for _ in 0..ROUNDS / 4 {
        let begun = Instant::now();
        let sandbox = driver.start_sandbox(SandboxPolicy::new(folder)).await?;
        starts.push(begun.elapsed());
        sandbox.stop().await?;
    }
    let sandbox = driver.start_sandbox(SandboxPolicy::new(folder)).await?;
    let (mut inside, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        in_sandbox(&sandbox).await?;
        inside.push(begun.elapsed());
        let begun = Instant::now();
        let command = ["-c", "exit 0"];
        tokio::process::Command::from(Command::new("bash")).args(command).stdin(Stdio::null()).status().await?;
        plain.push(begun.elapsed());
    }
    sandbox.stop().await?;
    let with_median = |mut timings: Vec<Duration>| {
        timings.sort();
        let median = timings[timings.len() / 2];
        (timings, median)
    };
    Ok((starts, with_median(inside), with_median(plain)))
}

async fn in_sandbox(sandbox: &sandbox::LocalSandbox) -> Result<(), SandboxError> {
    let null =
        || File::options().read(true).write(true).open("/dev/null").map(Into::into).map_err(SandboxError::Helper);
    let io = CommandIo { stdin: null()?, stdout: null()?, stderr: null()? };
    sandbox.run(CommandSpec::new(["bash", "-c", "exit 0"]), io).await?.wait().await;
    Ok(())
}

fn print(what: &str, mut timings: Vec<Duration>) {
    timings.sort();
    let at = |share: usize| timings[timings.len() * share / 100];
    println!("{what}: minimum {:?}, median {:?}, 95% {:?}", timings[0], at(50), at(95));
}
