//! Checks the machine: a writable data directory, disk space, a free address.

use super::{DoctorFinding, FindingState};
use crate::{cli::client::ApiClient, config::AppConfig, data_folder};
use serde::Deserialize;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

/// With less free space the journal cannot be written for long.
const LITTLE_SPACE: u64 = 256 * 1024 * 1024;
/// A server on this machine answers at once or not at all.
const ANSWER: Duration = Duration::from_secs(5);

pub fn data_directory(path: &Path) -> DoctorFinding {
    let what = "data directory";
    // The directory is created at the first start; until then the nearest existing parent is checked.
    let there = path.ancestors().find(|above| above.is_dir()).unwrap_or_else(|| Path::new("."));
    if path.exists() && !path.is_dir() {
        return DoctorFinding::new(what, FindingState::Broken, "it is not a directory").at(path.display());
    }
    if let Err(error) = try_to_write(there) {
        let detail = format!("cannot write there: {error}");
        return DoctorFinding::new(what, FindingState::Broken, detail)
            .at(there.display())
            .advise("choose another with --data-dir");
    }
    let made = if path.is_dir() { "" } else { "made at the first start; " };
    let finding = match rustix::fs::statvfs(there) {
        Err(error) => DoctorFinding::new(what, FindingState::Ok, format!("{made}free space unknown: {error}")),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let state = if free < LITTLE_SPACE { FindingState::Broken } else { FindingState::Ok };
            DoctorFinding::new(what, state, format!("{made}{} MiB free", free / (1024 * 1024)))
        }
    };
    finding.at(path.display())
}

/// Whether other users of the machine are kept out.
pub fn private_files(config: &AppConfig) -> DoctorFinding {
    let what = "private files";
    match data_folder::open_to_others(config) {
        Ok(open) if open.is_empty() => DoctorFinding::new(what, FindingState::Ok, "no other user can read the data"),
        Ok(open) => {
            let names: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
            DoctorFinding::new(what, FindingState::Broken, "other users of this machine can read the data")
                .at(names.join(", "))
                .advise("a start of the server makes them private")
        }
        Err(error) => DoctorFinding::new(what, FindingState::Broken, format!("cannot be checked: {error:#}")),
    }
}

fn try_to_write(directory: &Path) -> io::Result<()> {
    let probe = directory.join(format!(".greenroom-doctor-{}", uuid::Uuid::now_v7()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&probe)?;
    std::fs::remove_file(probe)
}

pub async fn address(listen: SocketAddr) -> DoctorFinding {
    let what = "address";
    let error = match TcpListener::bind(listen) {
        Ok(_) => return DoctorFinding::new(what, FindingState::Ok, format!("{listen} is free")),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return DoctorFinding::new(
            what,
            FindingState::Broken,
            format!("cannot serve on {listen}: {error}; choose another with --listen"),
        );
    }
    match tokio::time::timeout(ANSWER, version(listen)).await {
        Ok(Some(version)) => {
            DoctorFinding::new(what, FindingState::Ok, format!("Greenroom {version} answers on {listen}"))
        }
        _ => DoctorFinding::new(
            what,
            FindingState::Broken,
            format!("something else answers on {listen}; choose another with --listen"),
        ),
    }
}

#[derive(Deserialize)]
struct OpenApiDocument {
    info: OpenApiInfo,
}

#[derive(Deserialize)]
struct OpenApiInfo {
    title: String,
    version: String,
}

/// The version of the Greenroom server at this address.
async fn version(listen: SocketAddr) -> Option<String> {
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let server = format!("http://{}", SocketAddr::new(host, listen.port()));
    let client = ApiClient::without_credential(&server).ok()?;
    let OpenApiDocument { info } = client.get("/openapi.json", &[]).await.ok()?;
    info.title.contains("Greenroom").then_some(info.version)
}

#[cfg(test)]
mod tests {
    use super::{FindingState, address, data_directory};
    use std::net::TcpListener;

    #[test]
    fn a_directory_that_cannot_be_created_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(data_directory(dir.path()).state, FindingState::Ok);
        assert_eq!(data_directory(&dir.path().join("a/b")).state, FindingState::Ok);
        assert_eq!(data_directory(&file).state, FindingState::Broken);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[tokio::test]
    async fn an_address_is_free_or_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap();
        assert_eq!(address("127.0.0.1:0".parse().unwrap()).await.state, FindingState::Ok);
        let answering = std::thread::spawn(move || drop(listener.accept()));
        assert_eq!(address(taken).await.state, FindingState::Broken, "it is not a Greenroom server");
        answering.join().unwrap();
        assert_eq!(address("192.0.2.1:1".parse().unwrap()).await.state, FindingState::Broken);
    }
}
