//! The project's own tools, run as `cargo xtask <command>`: serve, test, tidy, chaos, bench.
//!
//! Standard library only, so that it builds in a second on a machine that has nothing but cargo. It
//! knows how to build, start and check the product; the product never knows about it. Start at
//! `COMMANDS`.

mod bench;
mod chaos;
mod ci;
mod clis;
mod mcp_servers;
mod postgres;
mod prerequisites;
mod serve;
mod test;
mod tidy;
mod totals;
mod web;
mod workspace;

use std::process::ExitCode;

use workspace::Outcome;

struct Command {
    name: &'static str,
    arguments: &'static str,
    /// None keeps a command out of the help: it is called by xtask itself.
    summary: Option<&'static str>,
    run: fn(&[String]) -> Outcome<ExitCode>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "serve",
        arguments: "[-- arguments]",
        summary: Some("build the server in release mode and become it"),
        run: serve::command,
    },
    Command {
        name: "test",
        arguments: "[stage…] [-- arguments for cargo test]",
        summary: Some("run every test, or the named stages: tidy, web, rust, cli, mcp, browser, chaos"),
        run: test::command,
    },
    Command {
        name: "web",
        arguments: "",
        summary: Some("build the web app, which the next build of the server takes along; needs Node.js"),
        run: web::command,
    },
    Command { name: "tidy", arguments: "", summary: Some("check the rules of the source tree"), run: tidy::command },
    Command {
        name: "chaos",
        arguments: "[arguments]",
        summary: Some("kill the server again and again and check that nothing is lost"),
        run: chaos::command,
    },
    Command {
        name: "bench",
        arguments: "[arguments]",
        summary: Some("measure the server; `providers` measures it with the real CLIs"),
        run: bench::command,
    },
    Command {
        name: "postgres",
        arguments: "",
        summary: Some("start a throwaway PostgreSQL, print its URL, stop it on Enter"),
        run: postgres::command,
    },
    Command {
        name: "ci",
        arguments: "",
        summary: Some("what has to be green before a commit: format, clippy, every test"),
        run: ci::command,
    },
    Command { name: postgres::GUARD_COMMAND, arguments: "", summary: None, run: postgres::guard_command },
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
        eprint!("xtask: there is no command `{name}`\n\n{}", help());
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
        assert!(!help.contains(postgres::GUARD_COMMAND));
    }
}
