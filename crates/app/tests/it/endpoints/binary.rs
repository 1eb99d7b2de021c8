//! The real binary on a test database: as a server, and as a command-line tool.

use super::requests::within;
use std::path::PathBuf;
use store::Backend;
use tempfile::TempDir;
use testkit::{
    client::{ServerLaunch, TestClient, TestServerProcess},
    database::TestDatabase,
};

/// A folder and settings to run the binary with. Its servers have a marker variable for finding orphans.
pub struct Binary {
    folder: TempDir,
    pub launch: ServerLaunch,
    pub mark: String,
    database_args: Vec<String>,
}

impl Binary {
    pub fn on(database: &TestDatabase) -> Self {
        Self::on_folder(database, None)
    }

    /// With another data folder than that of the database.
    pub fn on_folder(database: &TestDatabase, data_dir: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("TEST_MARK={}", uuid::Uuid::now_v7());
        let (name, value) = mark.split_once('=').unwrap();
        let data_dir = data_dir.unwrap_or_else(|| match database.backend() {
            Backend::Sqlite { file } => file.parent().unwrap().to_owned(),
            Backend::Postgres { .. } => folder.path().join("data"),
        });
        let mut launch = ServerLaunch::new(env!("CARGO_BIN_EXE_greenroom"), &data_dir).with(name, value);
        launch.log = folder.path().join("server.log");
        let database_args = match database.backend() {
            Backend::Sqlite { .. } => vec!["--data-dir".to_owned(), data_dir.display().to_string()],
            Backend::Postgres { url } => {
                launch = launch.with("GREENROOM_STORE__DATABASE", &url);
                vec!["--database".to_owned(), url, "--data-dir".to_owned(), data_dir.display().to_string()]
            }
        };
        Self { folder, launch, mark, database_args }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.launch = self.launch.with(name, value);
        self
    }

    /// Starts a server; later servers use the same address. The client has the local key.
    pub async fn serve(&mut self) -> (TestServerProcess, TestClient) {
        let server = within("the server to start", self.launch.start()).await.unwrap();
        let (_, address) = server.base_url().split_once("://").unwrap();
        address.clone_into(&mut self.launch.listen);
        let api = server.client().unwrap();
        (server, api)
    }

    /// Runs a command that works directly on the database.
    pub async fn run_command(&self, arguments: &[&str]) -> crate::CommandOutput {
        let database_args: Vec<&str> = self.database_args.iter().map(String::as_str).collect();
        crate::run(self.folder.path(), &[arguments, &database_args].concat()).await
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.launch.log).unwrap()
    }
}
