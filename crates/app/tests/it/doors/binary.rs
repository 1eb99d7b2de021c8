//! The real binary on a test's database: as a server, and as a tool beside it.

use super::scene::within;
use std::path::PathBuf;
use store::Backend;
use tempfile::TempDir;
use testkit::{
    client::{Api, Launch, ServerProcess},
    database::TestDatabase,
};

/// A place to run the binary in. Its servers carry a mark, by which anything they leave behind is found.
pub struct Binary {
    folder: TempDir,
    pub launch: Launch,
    pub mark: String,
    place: Vec<String>,
}

impl Binary {
    pub fn on(database: &TestDatabase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("DOORS_MARK={}", uuid::Uuid::now_v7());
        let (name, value) = mark.split_once('=').unwrap();
        let data_dir = match database.backend() {
            Backend::Sqlite { file } => file.parent().unwrap().to_owned(),
            Backend::Postgres { .. } => folder.path().join("data"),
        };
        let mut launch = Launch::new(env!("CARGO_BIN_EXE_greenroom"), &data_dir).with(name, value);
        launch.log = folder.path().join("server.log");
        let place = match database.backend() {
            Backend::Sqlite { .. } => vec!["--data-dir".to_owned(), data_dir.display().to_string()],
            Backend::Postgres { url } => {
                launch = launch.with("GREENROOM_STORE__DATABASE", &url);
                vec!["--database".to_owned(), url]
            }
        };
        Self { folder, launch, mark, place }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.launch = self.launch.with(name, value);
        self
    }

    /// Starts a server; the next one comes up at the same address.
    pub async fn serve(&mut self) -> (ServerProcess, Api) {
        let server = within("the server to start", self.launch.start()).await.unwrap();
        server.base().strip_prefix("http://").unwrap().clone_into(&mut self.launch.listen);
        let api = Api::new(server.base()).unwrap();
        (server, api)
    }

    /// Runs a command that works on the database itself.
    pub async fn beside(&self, arguments: &[&str]) -> crate::Ended {
        let place: Vec<&str> = self.place.iter().map(String::as_str).collect();
        crate::run(self.folder.path(), &[arguments, &place].concat()).await
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.launch.log).unwrap()
    }
}
