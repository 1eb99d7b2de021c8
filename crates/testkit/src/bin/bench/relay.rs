//! Stands between Greenroom and `claude`, so that one process can be asked by both ways: through a room, and by whoever
//! connects to the relay's port. Of two processes of `claude` one may be several milliseconds quicker than the other all the
//! time, which is more than what is to be measured.
//!
//! It is this very program under another name. What it needs to know lies beside that name, since Greenroom hands few
//! variables on to the programs that it starts.

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

/// What is to be started in the program's place.
pub fn install(folder: &Path, program: &Path) -> io::Result<PathBuf> {
    symlink(program, folder.join(PROGRAM))?;
    let relay = folder.join(NAME);
    symlink(std::env::current_exe()?, &relay)?;
    Ok(relay)
}

/// Where the relay in this folder listens, once it does.
pub fn port(folder: &Path) -> Option<u16> {
    fs::read_to_string(folder.join(PORT)).ok()?.parse().ok()
}

/// The folder of the relay that this process is, if it was started as one.
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
    let asker: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let new = folder.join("port.new");
    fs::write(&new, door.local_addr()?.port().to_string())?;
    fs::rename(new, folder.join(PORT))?;
    let (input_here, asker_here) = (Arc::clone(&input), Arc::clone(&asker));
    thread::spawn(move || take_questions(&door, &input_here, &asker_here));
    thread::spawn(move || pass_on(&input));
    let Some(output) = program.stdout.take() else { anyhow::bail!("no output") };
    let mut output = BufReader::new(output);
    let (mut line, mut stdout) = (Vec::new(), io::stdout());
    while output.read_until(b'\n', &mut line)? > 0 {
        let mut asker = locked(&asker);
        match &mut *asker {
            Some(direct) => direct.write_all(&line)?,
            None => stdout.write_all(&line).and_then(|()| stdout.flush())?,
        }
        if is_the_last(&line) {
            *asker = None;
        }
        line.clear();
    }
    let code = program.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The questions of those who connect, one line each. The answer is theirs up to its last line.
fn take_questions(door: &TcpListener, input: &Mutex<Option<ChildStdin>>, asker: &Mutex<Option<TcpStream>>) {
    for direct in door.incoming().map_while(Result::ok) {
        if direct.set_nodelay(true).is_err() {
            continue;
        }
        let Ok(answers) = direct.try_clone() else { continue };
        for question in BufReader::new(direct).lines().map_while(Result::ok) {
            *locked(asker) = answers.try_clone().ok();
            if tell(input, format!("{question}\n").as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// What Greenroom says; its end is the end.
fn pass_on(input: &Mutex<Option<ChildStdin>>) {
    let (mut stdin, mut said) = (io::stdin(), vec![0; 64 * 1024]);
    while let Ok(count @ 1..) = stdin.read(&mut said) {
        if tell(input, &said[..count]).is_err() {
            break;
        }
    }
    drop(locked(input).take());
}

fn tell(input: &Mutex<Option<ChildStdin>>, said: &[u8]) -> io::Result<()> {
    match &mut *locked(input) {
        Some(input) => input.write_all(said),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Quotes within a text are written otherwise.
fn is_the_last(line: &[u8]) -> bool {
    const RESULT: &[u8] = br#""type":"result""#;
    line.windows(RESULT.len()).any(|part| part == RESULT)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
