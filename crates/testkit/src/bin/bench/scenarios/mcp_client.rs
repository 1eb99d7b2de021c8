//! The overhead of the MCP manager per call: the same tool in two processes of the same server, called alternately over
//! bare pipes and through the manager. Also measures how long a long tool list takes.

use crate::{
    Bench,
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::{Context as _, ensure};
use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, process::Stdio, time::Instant};
use testkit::programs;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};
use workbench::{
    mcp::{CallOptions, McpClientSettings, McpManager},
    process::Supervisor,
};

const TOOLS: usize = 5000;

#[derive(Default)]
pub struct McpClientScenario {
    bare: Rounds,
    managed: Rounds,
    list: Rounds,
}

impl McpClientScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let folder = bench.new_folder("mcp");
        std::fs::create_dir_all(&folder)?;
        let program = programs::fake_mcp();
        let manager = McpManager::new(Supervisor::new(program.clone()), McpClientSettings::new(folder));
        let measured = self.measure(&manager, &program, bench.scale.tool_calls).await;
        manager.close().await;
        measured
    }

    async fn measure(&mut self, manager: &McpManager, program: &Path, calls: usize) -> anyhow::Result<()> {
        let good = server(program, "good", "")?;
        let mut pipes = PipeClient::start(program).await?;
        let arguments = json!({"text": "hello"}).as_object().cloned().unwrap_or_default();
        manager.tools(&good).await?;
        let (mut bare, mut managed) = (Vec::new(), Vec::new());
        for call in 0..calls {
            let begin = Instant::now();
            let answer = pipes.request(call, "tools/call", json!({"name": "echo", "arguments": arguments})).await?;
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
        // Starts the server first, so that its start is not measured.
        manager.call(&many, "echo", arguments, CallOptions::default()).await?;
        let begin = Instant::now();
        let listing = manager.tools(&many).await?;
        self.list.push(begin.elapsed().as_secs_f64() * 1000.0);
        ensure!(listing.tools.len() == TOOLS, "{} tools", listing.tools.len());
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        vec![
            FigureRow::new("a tool call over stdio through the MCP manager", FigureUnit::Milliseconds, self.managed)
                .against("two bare pipes", self.bare)
                .aiming_at(Aim::AddsAtMost(1.0)),
            FigureRow::new(format!("list of {TOOLS} tools"), FigureUnit::Milliseconds, self.list)
                .aiming_at(Aim::AtMost(1000.0)),
        ]
    }
}

fn server(program: &Path, mode: &str, detail: &str) -> anyhow::Result<NamedMcpServer> {
    let command = program.to_str().context("the path is not UTF-8")?.to_owned();
    let args = vec![mode.to_owned(), detail.to_owned()];
    Ok(NamedMcpServer::new("fake", McpTransport::Stdio { command, args, env: BTreeMap::new() }))
}

/// The minimal client: writes a line, reads a line.
struct PipeClient {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl PipeClient {
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
        pipes.request(0, "initialize", hello).await?;
        Ok(pipes)
    }

    async fn request(&mut self, id: usize, method: &str, params: Value) -> anyhow::Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes()).await?;
        let line = self.output.next_line().await?.context("the server ended")?;
        Ok(serde_json::from_str(&line)?)
    }
}
