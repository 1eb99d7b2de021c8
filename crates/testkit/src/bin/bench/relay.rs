//! A relay between Greenroom and `claude`, so that the same process can be used both through a room and directly, over
//! the relay's port. Two processes of `claude` can differ by several milliseconds, which is more than the measured
//! overhead.
//!
//! The relay is this program under another name. Its settings are files next to that name, because Greenroom passes few
//! environment variables to the programs it starts.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

const NAME: &str = "relay";
const PROGRAM: &str = "claude";
const PORT: &str = "port";

/// Installs the relay and returns the path to start instead of the program.
pub fn install(folder: &Path, program: &Path) -> io::Result<PathBuf> {
    symlink(program, folder.join(PROGRAM))?;
    let relay = folder.join(NAME);
    symlink(std::env::current_exe()?, &relay)?;
    Ok(relay)
}

/// Returns the port of the relay in this folder, once it listens.
pub fn port(folder: &Path) -> Option<u16> {
    fs::read_to_string(folder.join(PORT)).ok()?.parse().ok()
}

/// Returns the folder of this relay if the process was started as one.
pub fn started_in() -> Option<PathBuf> {
    let started = PathBuf::from(std::env::args_os().next()?);
    (started.file_name()? == NAME).then(|| started.parent().map(Path::to_owned))?
}

pub fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    let mut program = Command::new(folder.join(PROGRAM))
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = Arc::new(Mutex::new(program.stdin.take()));
    let client: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let new = folder.join("port.new");
    fs::write(&new, listener.local_addr()?.port().to_string())?;
    fs::rename(new, folder.join(PORT))?;
    let (input_clone, client_clone) = (Arc::clone(&input), Arc::clone(&client));
    thread::spawn(move || forward_direct_prompts(&listener, &input_clone, &client_clone));
    thread::spawn(move || forward_greenroom_input(&input));
    let Some(output) = program.stdout.take() else { anyhow::bail!("no output") };
    let mut output = BufReader::new(output);
    let (mut line, mut stdout) = (Vec::new(), io::stdout());
    while output.read_until(b'\n', &mut line)? > 0 {
        let mut client = locked(&client);
        match &mut *client {
            Some(direct) => direct.write_all(&line)?,
            None => stdout.write_all(&line).and_then(|()| stdout.flush())?,
        }
        if is_result(&line) {
            *client = None;
        }
        line.clear();
    }
    let code = program.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Forwards prompts from direct clients, one per line. The output goes to that client up to the result line.
fn forward_direct_prompts(
    listener: &TcpListener,
    input: &Mutex<Option<ChildStdin>>,
    client: &Mutex<Option<TcpStream>>,
) {
    for direct in listener.incoming().map_while(Result::ok) {
        if direct.set_nodelay(true).is_err() {
            continue;
        }
        let Ok(answers) = direct.try_clone() else { continue };
        for prompt in BufReader::new(direct).lines().map_while(Result::ok) {
            *locked(client) = answers.try_clone().ok();
            if write_input(input, format!("{prompt}\n").as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Forwards input from Greenroom. The end of that input closes the program's input.
fn forward_greenroom_input(input: &Mutex<Option<ChildStdin>>) {
    let (mut stdin, mut chunk) = (io::stdin(), vec![0; 64 * 1024]);
    while let Ok(count @ 1..) = stdin.read(&mut chunk) {
        if write_input(input, &chunk[..count]).is_err() {
            break;
        }
    }
    drop(locked(input).take());
}

fn write_input(input: &Mutex<Option<ChildStdin>>, chunk: &[u8]) -> io::Result<()> {
    match &mut *locked(input) {
        Some(input) => input.write_all(chunk),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Matches the result line. Quotes inside texts are escaped, so they cannot match.
fn is_result(line: &[u8]) -> bool {
    const RESULT: &[u8] = br#""type":"result""#;
    line.windows(RESULT.len()).any(|part| part == RESULT)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
