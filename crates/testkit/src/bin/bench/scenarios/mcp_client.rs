//! What the MCP manager adds to a call: the same tool of two processes of the same server, in turn by two bare pipes and
//! through the manager. And how long a long list of tools takes.

use crate::{
    Bench,
    statistics::{Rounds, percentile},
    table::{Aim, Row, Unit},
};
use anyhow::{Context as _, ensure};
use domain::mcp::{Server, Transport};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, process::Stdio, time::Instant};
use testkit::programs;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};
use workbench::{
    mcp::{CallOptions, Manager, Settings},
    process::Supervisor,
};

const TOOLS: usize = 5000;

#[derive(Default)]
pub struct McpClient {
    bare: Rounds,
    managed: Rounds,
    list: Rounds,
}

impl McpClient {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let folder = bench.fresh("mcp");
        std::fs::create_dir_all(&folder)?;
        let program = programs::fake_mcp();
        let manager = Manager::new(Supervisor::new(program.clone()), Settings::new(folder));
        let measured = self.measure(&manager, &program, bench.scale.tool_calls).await;
        manager.close().await;
        measured
    }

    async fn measure(&mut self, manager: &Manager, program: &Path, calls: usize) -> anyhow::Result<()> {
        let good = server(program, "good", "")?;
        let mut pipes = Pipes::start(program).await?;
        let arguments = json!({"text": "hello"}).as_object().cloned().unwrap_or_default();
        manager.tools(&good).await?;
        let (mut bare, mut managed) = (Vec::new(), Vec::new());
        for call in 0..calls {
            let begin = Instant::now();
            let answer = pipes.ask(call, "tools/call", json!({"name": "echo", "arguments": arguments})).await?;
            bare.push(begin.elapsed().as_secs_f64() * 1000.0);
            ensure!(answer["result"]["content"][0]["text"] == "hello", "the server says {answer}");
            let begin = Instant::now();
            let result = manager.call(&good, "echo", arguments.clone(), CallOptions::default()).await?;
            managed.push(begin.elapsed().as_secs_f64() * 1000.0);
            ensure!(result.text() == "hello", "the manager says {result:?}");
        }
        self.bare.push(percentile(&bare, 50.0).context("no call")?);
        self.managed.push(percentile(&managed, 50.0).context("no call")?);

        let many = server(program, "many", &TOOLS.to_string())?;
        // So that its start is not measured.
        manager.call(&many, "echo", arguments, CallOptions::default()).await?;
        let begin = Instant::now();
        let listing = manager.tools(&many).await?;
        self.list.push(begin.elapsed().as_secs_f64() * 1000.0);
        ensure!(listing.tools.len() == TOOLS, "{} tools", listing.tools.len());
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        vec![
            Row::new("a tool call over stdio through the MCP manager", Unit::Milliseconds, self.managed)
                .against("two bare pipes", self.bare)
                .aiming_at(Aim::AddsAtMost(1.0)),
            Row::new(format!("list of {TOOLS} tools"), Unit::Milliseconds, self.list).aiming_at(Aim::AtMost(1000.0)),
        ]
    }
}

fn server(program: &Path, mode: &str, detail: &str) -> anyhow::Result<Server> {
    let command = program.to_str().context("an odd path")?.to_owned();
    let args = vec![mode.to_owned(), detail.to_owned()];
    Ok(Server::new("fake", Transport::Stdio { command, args, env: BTreeMap::new() }))
}

/// The least that a client can do: write a line, read a line.
struct Pipes {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Pipes {
    async fn start(program: &Path) -> anyhow::Result<Self> {
        let mut process = Command::new(program)
            .arg("good")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let input = process.stdin.take().context("no input")?;
        let output = BufReader::new(process.stdout.take().context("no output")?).lines();
        let mut pipes = Self { input, output, _process: process };
        let us = json!({"name": "bench", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us});
        pipes.ask(0, "initialize", hello).await?;
        Ok(pipes)
    }

    async fn ask(&mut self, id: usize, method: &str, params: Value) -> anyhow::Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes()).await?;
        let line = self.output.next_line().await?.context("it ended")?;
        Ok(serde_json::from_str(&line)?)
    }
}
