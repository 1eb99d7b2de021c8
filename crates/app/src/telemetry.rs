//! Logs to standard error, as text for people or JSON for programs. Every event is one line, whatever it contains.

use crate::{
    config::{LogFormat, LogSection},
    terminal::{sanitize, screen},
};
use anyhow::Context as _;
use std::io::{self, IsTerminal as _, Write};
use tracing_subscriber::EnvFilter;

/// The MCP client library logs complete addresses and messages, which may hold secrets (invariant 17). We log the state
/// of MCP servers ourselves.
const SILENT: &str = "rmcp=off";

/// Starts logging. Call it once, before anything is logged.
pub fn init(log: &LogSection) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level).context("log.level")?.add_directive(SILENT.parse()?);
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    let started = match log.format {
        LogFormat::Json => {
            let writer = || OneLine { to: io::stderr(), style: LogStyle::Json };
            builder.json().with_ansi(false).with_writer(writer).try_init()
        }
        LogFormat::Text => {
            let colors = io::stderr().is_terminal() && screen::colors_wanted();
            let writer = move || OneLine { to: io::stderr(), style: LogStyle::Text { colors } };
            builder.with_ansi(colors).with_writer(writer).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

/// The formatter writes each event with one call. A newline inside it comes from data and would forge an event.
struct OneLine<W> {
    to: W,
    style: LogStyle,
}

#[derive(Clone, Copy)]
enum LogStyle {
    Text { colors: bool },
    Json,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = match self.style {
            LogStyle::Text { colors } => sanitize::log_line(&text, colors),
            LogStyle::Json => format!("{}\n", sanitize::json(text.trim_end_matches('\n'))),
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
    use super::{LogStyle, OneLine};
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
        for style in [LogStyle::Text { colors: false }, LogStyle::Text { colors: true }, LogStyle::Json] {
            let written = Shared::default();
            let to = written.clone();
            let writer = move || OneLine { to: to.clone(), style };
            let say = || tracing::info!(name = %"a\nERROR forged\u{1b}[2J\u{9b}2J", "said \r\nmore");
            let builder = tracing_subscriber::fmt().with_writer(writer);
            match style {
                LogStyle::Text { colors } => {
                    tracing::subscriber::with_default(builder.with_ansi(colors).finish(), say);
                }
                LogStyle::Json => tracing::subscriber::with_default(builder.json().finish(), say),
            }
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.matches('\n').count(), 1, "{text:?}");
            assert!(text.ends_with('\n') && text.contains("forged"), "{text:?}");
            assert!(!text.contains("\u{1b}[2J") && !text.contains('\u{9b}') && !text.contains('\r'), "{text:?}");
        }
    }
}
