//! The lines that a program writes, from both of its outputs, as they come.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::process::{terminate, terminate_group, wait};
use crate::repository::{XtaskResult, cannot_run, spell};

/// A process that a test left behind may hold the output open, so after the program's own end a silence of this length
/// is the end of the output.
const SILENCE: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(15);
/// How many lines may wait to be handled.
const WAITING_LINES: usize = 1000;

/// Runs the program without an input. A program that exceeds the limit is ended, which is an error. So is one that runs
/// when `stop` becomes true; it has a process group of its own then, because Control-C does not reach it.
pub fn follow(
    command: &mut Command,
    limit: Duration,
    stop: Option<&AtomicBool>,
    on_line: &mut dyn FnMut(&str),
) -> XtaskResult<ExitStatus> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if stop.is_some() {
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(|error| cannot_run(command, &error))?;
    let deadline = Instant::now() + limit;
    let (sender, lines) = sync_channel(WAITING_LINES);
    read_apart(child.stdout.take(), sender.clone());
    read_apart(child.stderr.take(), sender);
    loop {
        let has_ended = matches!(child.try_wait(), Ok(Some(_)));
        if Instant::now() >= deadline {
            break;
        }
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            terminate_group(&mut child, GRACE);
            return Err(format!("`{}` was stopped", spell(command)));
        }
        match lines.recv_timeout(SILENCE) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Timeout) if !has_ended => {}
            Err(_) => break,
        }
    }
    if let Some(status) = wait(&mut child, deadline.saturating_duration_since(Instant::now()))? {
        return Ok(status);
    }
    let program = spell(command);
    match terminate(&mut child, GRACE) {
        true => Err(format!("`{program}` took longer than {} minutes and was ended", limit.as_secs() / 60)),
        false => Err(format!("`{program}` took too long and does not end; end process {} by hand", child.id())),
    }
}

/// On a thread of its own, because reading has no deadline.
fn read_apart(output: Option<impl Read + Send + 'static>, sender: SyncSender<String>) {
    if let Some(output) = output {
        std::thread::spawn(move || read_lines(BufReader::new(output), &mut |line| sender.send(line).is_ok()));
    }
}

/// Lines end with a newline, or with a carriage return where a program rewrites its line. Goes on while `take` says so.
fn read_lines(mut output: impl BufRead, take: &mut dyn FnMut(String) -> bool) {
    let mut line = Vec::new();
    let mut previous = b'\n';
    loop {
        let chunk = match output.fill_buf() {
            Ok(chunk) if !chunk.is_empty() => chunk,
            _ => break,
        };
        let length = chunk.len();
        for &byte in chunk {
            let is_end = byte == b'\n' || byte == b'\r';
            let is_second_of_pair = byte == b'\n' && previous == b'\r';
            previous = byte;
            if !is_end {
                line.push(byte);
            } else if !is_second_of_pair && !take(text(&mut line)) {
                return;
            }
        }
        output.consume(length);
    }
    if !line.is_empty() {
        take(text(&mut line));
    }
}

fn text(line: &mut Vec<u8>) -> String {
    String::from_utf8_lossy(&std::mem::take(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn run(script: &str, limit: Duration) -> (XtaskResult<ExitStatus>, Vec<String>) {
        let mut lines = Vec::new();
        let status =
            follow(Command::new("sh").args(["-c", script]), limit, None, &mut |line| lines.push(line.to_owned()));
        (status, lines)
    }

    #[test]
    fn rewritten_lines_are_lines_too() {
        let read = |bytes: &str| {
            let mut lines = Vec::new();
            read_lines(bytes.as_bytes(), &mut |line| {
                lines.push(line);
                true
            });
            lines
        };
        assert_eq!(read("a\n\nb\rc\r\nd"), ["a", "", "b", "c", "d"]);
        assert_eq!(read("1/2\r2/2\r    Finished\n"), ["1/2", "2/2", "    Finished"]);
        assert_eq!(read(""), [""; 0]);
    }

    #[test]
    fn both_outputs_are_read_to_the_end() {
        let (status, mut lines) = run("echo out; echo err >&2; exit 3", LONG);
        lines.sort();
        assert_eq!(status.map(|status| status.code()), Ok(Some(3)));
        assert_eq!(lines, ["err", "out"]);
    }

    #[test]
    fn a_process_left_behind_is_not_waited_for() {
        let begin = Instant::now();
        let (status, lines) = run("sleep 20 & echo done", LONG);
        assert!(status.is_ok_and(|status| status.success()));
        assert_eq!(lines, ["done"]);
        assert!(begin.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let begin = Instant::now();
        for script in ["exec sleep 60", "while :; do echo more; sleep 0.01; done", "exec sleep 60 >/dev/null 2>&1"] {
            let (status, _) = run(script, Duration::from_millis(300));
            assert!(status.is_err_and(|message| message.contains("was ended")), "{script}");
        }
        assert!(begin.elapsed() < Duration::from_secs(45));
    }

    #[test]
    fn a_program_is_stopped_with_all_that_it_started() {
        let stop = AtomicBool::new(false);
        let mut started = String::new();
        let mut shell = Command::new("sh");
        let status = follow(shell.args(["-c", "sleep 60 & echo $!; wait"]), LONG, Some(&stop), &mut |line| {
            started = line.to_owned();
            stop.store(true, Ordering::Relaxed);
        });
        assert!(status.is_err_and(|message| message.ends_with("was stopped")));
        let deadline = Instant::now() + LONG;
        while Command::new("kill").args(["-0", &started]).output().unwrap().status.success() {
            assert!(Instant::now() < deadline, "{started} still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let missing = follow(&mut Command::new("no-such-program"), LONG, None, &mut |_| {});
        assert!(missing.is_err_and(|message| message.starts_with("cannot run `no-such-program`")));
    }
}
