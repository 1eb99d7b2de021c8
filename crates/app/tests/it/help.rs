//! A snapshot of the command-line help, so that changes are visible in review.

use clap::CommandFactory as _;
use greenroom::cli::Cli;

#[test]
fn the_help_of_every_command() {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut text = command.render_long_help().to_string();
    let mut waiting: Vec<clap::Command> = command.get_subcommands().cloned().collect();
    waiting.reverse();
    while let Some(mut command) = waiting.pop() {
        if command.get_name() == "help" {
            continue;
        }
        let nested: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        waiting.extend(nested.into_iter().rev());
        let help = command.render_long_help();
        text.push_str(&format!("\n──── {}\n{help}", command.get_bin_name().unwrap_or_default()));
    }
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(text.join("\n"));
}
