//! Logs: to standard error, as text for people or JSON for programs. One event is one line, whatever is in it.

use crate::{
    config::{Log, LogFormat},
    terminal::{sanitise, screen},
};
use anyhow::Context as _;
use std::io::{self, IsTerminal as _, Write};
use tracing_subscriber::EnvFilter;

/// The MCP client's library writes whole addresses into its errors, and whole messages beneath (invariant 17). What happens to
/// a server is told by us.
const SILENT: &str = "rmcp=off";

/// Call once, before anything is logged.
pub fn init(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level).context("log.level")?.add_directive(SILENT.parse()?);
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    let started = match log.format {
        LogFormat::Json => {
            let writer = || OneLine { to: io::stderr(), style: Style::Json };
            builder.json().with_ansi(false).with_writer(writer).try_init()
        }
        LogFormat::Text => {
            let colours = io::stderr().is_terminal() && screen::colours_wanted();
            let writer = move || OneLine { to: io::stderr(), style: Style::Text { colours } };
            builder.with_ansi(colours).with_writer(writer).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

/// The formatter writes each event with one call; a newline inside it came with the data and would forge an event.
struct OneLine<W> {
    to: W,
    style: Style,
}

#[derive(Clone, Copy)]
enum Style {
    Text { colours: bool },
    Json,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = match self.style {
            Style::Text { colours } => sanitise::log_line(&text, colours),
            Style::Json => format!("{}\n", sanitise::json(text.trim_end_matches('\n'))),
        };
        self.to.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::{OneLine, Style};
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn invariant_16_no_text_forges_a_log_line() {
        for style in [Style::Text { colours: false }, Style::Text { colours: true }, Style::Json] {
            let written = Shared::default();
            let to = written.clone();
            let writer = move || OneLine { to: to.clone(), style };
            let say = || tracing::info!(name = %"a\nERROR forged\u{1b}[2J\u{9b}2J", "said \r\nmore");
            let builder = tracing_subscriber::fmt().with_writer(writer);
            match style {
                Style::Text { colours } => {
                    tracing::subscriber::with_default(builder.with_ansi(colours).finish(), say);
                }
                Style::Json => tracing::subscriber::with_default(builder.json().finish(), say),
            }
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.matches('\n').count(), 1, "{text:?}");
            assert!(text.ends_with('\n') && text.contains("forged"), "{text:?}");
            assert!(!text.contains("\u{1b}[2J") && !text.contains('\u{9b}') && !text.contains('\r'), "{text:?}");
        }
    }
}
