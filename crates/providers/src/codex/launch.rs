//! Starting the program, apart from everything that talks to it: tests bring a program of their own.

use super::{command, home};
use crate::program::{self, Program};
use domain::run::{Receipt, RunError};
use std::{future::Future, path::Path, pin::Pin};
use tokio::io::AsyncWrite;
use workbench::process::{Ended, Handle, Lines};

pub type LaunchFuture = Pin<Box<dyn Future<Output = Result<Launched, RunError>> + Send>>;

pub trait Launch: Send + Sync + 'static {
    /// Starts one for the agent that lives in `home`.
    fn launch(&self, home: &Path) -> LaunchFuture;
}

/// A program that runs and has not been spoken to.
pub struct Launched {
    pub output: Lines,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub process: Box<dyn Process>,
    /// To be told to it once it listens.
    pub api_key: Option<String>,
}

/// The hold on a program. Dropped, everything it started is killed.
pub trait Process: Send {
    fn last_words(&self) -> String;
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = Ended> + Send + '_>>;
    /// After its input was closed.
    fn stop(self: Box<Self>) -> Pin<Box<dyn Future<Output = Receipt> + Send>>;
}

impl Process for Handle {
    fn last_words(&self) -> String {
        self.stderr().tail()
    }

    fn ended(&mut self) -> Pin<Box<dyn Future<Output = Ended> + Send + '_>> {
        Box::pin(Handle::ended(self))
    }

    fn stop(self: Box<Self>) -> Pin<Box<dyn Future<Output = Receipt> + Send>> {
        Box::pin(Handle::stop(*self, program::STOP))
    }
}

pub const ADVICE: &str = "Install Codex with `npm install -g @openai/codex`, or say in the settings where it is.";

impl Launch for Program {
    fn launch(&self, home: &Path) -> LaunchFuture {
        let (program, home) = (self.clone(), home.to_owned());
        Box::pin(async move {
            let Some(found) = program.locate() else {
                let message = format!("There is no program {:?} on this machine. {ADVICE}", program.command);
                return Err(RunError::new("program_missing", message));
            };
            let prepared = tokio::task::spawn_blocking({
                let (program, home) = (program.clone(), home.clone());
                move || {
                    home::prepare(&home, &program)?;
                    Ok((command::app_server(&program, &found, &home), command::api_key(&program, &home)))
                }
            });
            let prepared: std::io::Result<_> = prepared.await.map_err(std::io::Error::other).and_then(|inner| inner);
            let (command, api_key) = prepared.map_err(|error| {
                RunError::new("program_crashed", format!("The agent's folder for Codex cannot be made ready: {error}"))
            })?;
            let child = program.supervisor.start(command).await;
            let child = child.map_err(|error| RunError::new("program_crashed", format!("{error}. {ADVICE}")))?;
            Ok(Launched {
                output: child.stdout,
                input: Box::new(child.stdin),
                process: Box::new(child.handle),
                api_key,
            })
        })
    }
}
