//! A running collector, and the spans that it prints.

use std::{collections::BTreeMap, net::TcpListener, path::PathBuf, process::Stdio, time::Duration};
use tempfile::TempDir;
use testkit::programs;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

const DEADLINE: Duration = Duration::from_secs(15);

pub struct Collector {
    child: Child,
    port: u16,
    folder: TempDir,
}

/// A span as the collector understood it. Values have their types, such as `Str(ada)`.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CollectedSpan {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub kind: String,
    pub attributes: BTreeMap<String, String>,
    /// Trace and span.
    pub links: Vec<(String, String)>,
}

impl Collector {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Free when they were chosen; the collector cannot choose them itself.
        let [port, grpc] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(programs::collector());
        command.args([
            "start",
            "--exporter",
            "blackhole",
            "--debug-log",
            "traces",
            "--debug-log-verbosity",
            "detailed",
        ]);
        command.args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")]);
        command.args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")]);
        command.arg("--pid-file").arg(folder.path().join("pid"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true);
        let collector = Self { child: command.spawn().unwrap(), port, folder };
        let listens = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, listens)
            .await
            .unwrap_or_else(|_| panic!("the collector does not listen: {}", collector.log()));
        collector
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Everything that it has printed.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_file()).unwrap()).into_owned()
    }

    /// The spans received so far, as soon as they are these.
    pub async fn spans_until(&self, are_there: impl Fn(&[CollectedSpan]) -> bool) -> Vec<CollectedSpan> {
        let waiting = async {
            loop {
                let spans = parse(&self.log());
                if are_there(&spans) {
                    return spans;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("the spans did not arrive: {}", self.log()))
    }

    pub async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Reads what the collector prints for each span.
fn parse(log: &str) -> Vec<CollectedSpan> {
    let mut spans: Vec<CollectedSpan> = Vec::new();
    let mut is_link = false;
    for line in log.lines() {
        if line.starts_with("Span #") {
            spans.push(CollectedSpan::default());
            is_link = false;
            continue;
        }
        let Some(span) = spans.last_mut() else { continue };
        if line.starts_with("SpanLink #") {
            is_link = true;
            span.links.push(Default::default());
            continue;
        }
        let Some((key, value)) = line.trim().trim_start_matches("-> ").split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim().to_owned());
        match (key, is_link, span.links.last_mut()) {
            ("Trace ID", true, Some(link)) => link.0 = value,
            ("ID", true, Some(link)) => link.1 = value,
            (_, true, _) => {}
            ("Trace ID", ..) => span.trace = value,
            ("Parent ID", ..) => span.parent = value,
            ("ID", ..) => span.id = value,
            ("Name", ..) => span.name = value,
            ("Kind", ..) => span.kind = value,
            _ if line.trim().starts_with("-> ") => drop(span.attributes.insert(key.to_owned(), value)),
            _ => {}
        }
    }
    spans
}
