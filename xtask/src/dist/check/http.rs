//! As much of HTTP as it takes to ask a server on this machine one thing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::repository::XtaskResult;

const LIMIT: Duration = Duration::from_secs(5);
const LARGEST_ANSWER: u64 = 1_000_000;

/// Returns the body of a response with status 200.
pub fn get(address: SocketAddr, path: &str) -> XtaskResult<String> {
    let answer = ask(address, path).map_err(|error| format!("GET http://{address}{path}: {error}"))?;
    body(&answer).map_err(|status| format!("GET http://{address}{path} was answered with {status:?}"))
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(LARGEST_ANSWER).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The error is the status line.
fn body(answer: &str) -> Result<String, String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    match status.split_whitespace().nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(status.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_status_200_has_a_body() {
        assert_eq!(body("HTTP/1.1 200 OK\r\nA: b\r\n\r\nall is well"), Ok("all is well".into()));
        assert_eq!(body("HTTP/1.1 503 Busy\r\n\r\n200"), Err("HTTP/1.1 503 Busy".into()));
        assert_eq!(body(""), Err(String::new()));
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(get(address, "/healthz").is_err_and(|message| message.contains("/healthz")));
    }
}
