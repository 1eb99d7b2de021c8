//! `greenroom doctor`: what is installed, what is missing, and how to get it. Fails only when something that Greenroom
//! itself needs is broken; an agent's CLI that is not there is no fault.

mod agents;
mod database;
mod machine;
mod programs;
mod served;

pub use served::examine;

use super::{Exit, Place};
use crate::{config::Config, terminal::table};
use std::{fmt, io};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ok,
    /// Optional; the detail says how to get it.
    Missing,
    /// Greenroom does not work without it.
    Broken,
}

struct Finding {
    what: String,
    state: State,
    /// Where it is on this machine: for who sits at it.
    place: Option<String>,
    detail: String,
    /// What to do about it.
    advice: Option<String>,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Self { what: what.into(), state, place: None, detail: detail.into(), advice: None }
    }

    fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = Some(place.to_string());
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// All of it, on one line.
    fn told(&self) -> String {
        let parts = [self.place.as_deref(), Some(self.detail.as_str()), self.advice.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

fn configuration(config: &Config) -> Finding {
    match &config.file {
        Some(path) => Finding::new("configuration", State::Ok, "read").at(path.display()),
        None => Finding::new("configuration", State::Ok, "the defaults; no file"),
    }
}

pub async fn run(place: &Place) -> anyhow::Result<Exit> {
    let mut findings = match Config::load(&place.flags()) {
        Ok(config) => {
            let (database, address) = tokio::join!(database::check(&config), machine::address(config.server.listen));
            let mut findings =
                vec![configuration(&config), machine::data_directory(&config.store.data_dir), database, address];
            findings.extend(agents::check(&config).await);
            findings
        }
        Err(error) => {
            vec![Finding::new("configuration", State::Broken, format!("{:#}", anyhow::Error::new(error)))]
        }
    };
    findings.extend(programs::check().await);
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let state = match finding.state {
                State::Ok => "ok",
                State::Missing => "missing",
                State::Broken => "BROKEN",
            };
            vec![finding.what.clone(), state.to_owned(), finding.told()]
        })
        .collect();
    table::print(&mut io::stdout().lock(), &["what", "state", "detail"], &rows)?;
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    Ok(if broken { Exit::Failed } else { Exit::Success })
}
