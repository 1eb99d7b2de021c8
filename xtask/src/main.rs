//! The project's own tools, run as `cargo xtask <command>`: serve, test, tidy, chaos, bench.
//!
//! Standard library only, so that it builds in seconds on a machine that has nothing but cargo. It builds, starts and
//! checks the product; the product must not know about it. Start at `COMMANDS`.

mod api_tools;
mod bench;
mod chaos;
mod ci;
mod clis;
mod collector;
mod deps;
mod dist;
mod guard;
mod mcp_servers;
mod postgres;
mod prerequisites;
mod process;
mod progress;
mod repository;
mod serve;
mod steps;
mod test;
mod tidy;
mod totals;
mod web;

use std::process::ExitCode;

use repository::XtaskResult;

struct XtaskCommand {
    name: &'static str,
    arguments: &'static str,
    /// None for commands that only xtask itself calls.
    summary: Option<&'static str>,
    run: fn(&[String]) -> XtaskResult<ExitCode>,
}

const COMMANDS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "serve",
        arguments: "[--dev] [-- arguments]",
        summary: Some(
            "build the server in release mode and become it; with --dev, a debug server that restarts when its \
             source changes, and the web app's development server beside it",
        ),
        run: serve::command,
    },
    XtaskCommand {
        name: "test",
        arguments: "[stage…] [-- arguments]",
        summary: Some(
            "run every test, or the named stages: tidy, web, security, rust, sandbox, cli, mcp, api, browser, chaos. Arguments after -- go \
             to `cargo nextest run` in the stages security, rust, sandbox, cli and api where cargo-nextest is installed, else to `cargo test`, \
             and always to `cargo test` in the stage mcp; the two accept different ones",
        ),
        run: test::command,
    },
    XtaskCommand {
        name: "web",
        arguments: "",
        summary: Some("build the web app, which the next build of the server embeds; needs Node.js"),
        run: web::command,
    },
    XtaskCommand {
        name: "screens",
        arguments: "",
        summary: Some(
            "take the pictures and the recording of the README again, in a real browser; needs Node.js and Chromium",
        ),
        run: web::screens_command,
    },
    XtaskCommand {
        name: "tidy",
        arguments: "",
        summary: Some("check the rules of the source tree"),
        run: tidy::command,
    },
    XtaskCommand {
        name: "deps",
        arguments: "[--advisories <git repository>]",
        summary: Some(
            "check the dependencies: none unused, licences, duplicates, sources; with a copy of the RustSec database \
             also known vulnerabilities",
        ),
        run: deps::command,
    },
    XtaskCommand {
        name: "chaos",
        arguments: "[arguments]",
        summary: Some("kill the server repeatedly and check that nothing is lost"),
        run: chaos::command,
    },
    XtaskCommand {
        name: "bench",
        arguments: "[arguments]",
        summary: Some(
            "measure the server and write the tables into docs/benchmarks.md, unless --quick is given; `providers` \
             measures it with the real CLIs, `sandbox` what a sandbox costs, `mcp` with the official MCP SDKs, `nodes` two servers on one PostgreSQL",
        ),
        run: bench::command,
    },
    XtaskCommand {
        name: "guard",
        arguments: "[--release]",
        summary: Some(
            "check the server's size, memory, instructions and allocations against bounds; needs valgrind. The debug \
             build, as in `test`, or the release build",
        ),
        run: guard::command,
    },
    XtaskCommand {
        name: "postgres",
        arguments: "",
        summary: Some("start a throwaway PostgreSQL, print its URL, stop it on Enter"),
        run: postgres::command,
    },
    XtaskCommand {
        name: "dist",
        arguments: "[--target TRIPLE] [--check]",
        summary: Some(
            "build a release in target/dist: a static binary as tar.gz, a .deb with a systemd unit, and their sha256; \
             with --check, try both on a new Debian instead, which needs root",
        ),
        run: dist::command,
    },
    XtaskCommand {
        name: "ci",
        arguments: "",
        summary: Some("check what has to be green before a commit: format, clippy, every test"),
        run: ci::command,
    },
    XtaskCommand { name: postgres::GUARD_COMMAND, arguments: "", summary: None, run: postgres::guard_command },
    XtaskCommand { name: serve::GUARD_COMMAND, arguments: "", summary: None, run: serve::guard_command },
];

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let Some((name, rest)) = arguments.split_first() else {
        eprint!("{}", help());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprint!("xtask: unknown command `{name}`\n\n{}", help());
        return ExitCode::from(2);
    };
    match (command.run)(rest) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = String::from("Usage: cargo xtask <command> [arguments]\n\n");
    for command in COMMANDS {
        if let Some(summary) = command.summary {
            let call = format!("{} {}", command.name, command.arguments);
            text.push_str(&format!("  {}\n      {summary}\n", call.trim_end()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_public_command_and_no_hidden_one() {
        let help = help();
        for command in COMMANDS {
            let line = format!("\n  {}", command.name);
            assert!(command.summary.is_none() || help.contains(&line));
        }
        assert!(!help.contains(postgres::GUARD_COMMAND) && !help.contains(serve::GUARD_COMMAND));
    }
}
