//! `greenroom doctor`: what is installed, what is missing, and how to get it. Fails only when something that Greenroom
//! itself needs is broken; an agent's CLI that is not there is no fault.

mod agents;
mod database;
mod machine;
mod programs;

use super::{Exit, Place};
use crate::{config::Config, terminal::table};
use std::io;

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
    detail: String,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Self { what: what.into(), state, detail: detail.into() }
    }
}

fn read_from(config: &Config) -> String {
    match &config.file {
        Some(path) => path.display().to_string(),
        None => "the defaults; no file".to_owned(),
    }
}

pub async fn run(place: &Place) -> anyhow::Result<Exit> {
    let mut findings = match Config::load(&place.flags()) {
        Ok(config) => {
            let (database, address) = tokio::join!(database::check(&config), machine::address(config.server.listen));
            let mut findings = vec![
                Finding::new("configuration", State::Ok, read_from(&config)),
                machine::data_directory(&config.store.data_dir),
                database,
                address,
            ];
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
        .map(|Finding { what, state, detail }| {
            let state = match state {
                State::Ok => "ok",
                State::Missing => "missing",
                State::Broken => "BROKEN",
            };
            vec![what.clone(), state.to_owned(), detail.clone()]
        })
        .collect();
    table::print(&mut io::stdout().lock(), &["what", "state", "detail"], &rows)?;
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    Ok(if broken { Exit::Failed } else { Exit::Success })
}
