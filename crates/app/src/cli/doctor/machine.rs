//! Checks the machine: a writable data directory, disk space, a free address.

use super::{DoctorFinding, FindingState};
use crate::{
    cli::client::{ApiClient, ServerTrust},
    config::{AppConfig, TlsSetting},
    data_folder, sign_in,
    tls::{self, CertificateFingerprint},
};
use serde::Deserialize;
use std::{io, net::TcpListener, path::Path, time::Duration};

const TLS: &str = "TLS";
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

/// The TLS of the server that runs, whose flags may differ from the configuration; else of the configuration.
pub fn encryption_in_use(config: &AppConfig, running: Option<&FoundServer>) -> DoctorFinding {
    match running {
        Some(FoundServer { certificate: Some(sha256), .. }) => {
            DoctorFinding::new(TLS, FindingState::Ok, format!("on, in the running server; SHA-256 {sha256}"))
        }
        Some(FoundServer { certificate: None, .. }) if config.tls != TlsSetting::Off => {
            DoctorFinding::new(TLS, FindingState::Broken, "off in the running server, on in the configuration")
                .advise("restart the server")
        }
        Some(_) | None => encryption(config),
    }
}

/// The certificate of the server. A self-signed one is made at the first start with it.
pub fn encryption(config: &AppConfig) -> DoctorFinding {
    let what = TLS;
    let finding = match &config.tls {
        TlsSetting::Off if config.server.behind_tls_proxy => {
            return DoctorFinding::new(what, FindingState::Ok, "by a proxy in front");
        }
        TlsSetting::Off if config.server.listen.ip().to_canonical().is_loopback() => {
            return DoctorFinding::new(what, FindingState::Ok, "off; the address is on this machine only");
        }
        TlsSetting::Off => {
            return DoctorFinding::new(what, FindingState::Broken, "off, on an address that other machines can reach")
                .advise("choose --tls-self-signed, --tls-certificate or --behind-tls-proxy");
        }
        TlsSetting::SelfSigned => match tls::existing_self_signed(&config.store.data_dir) {
            Ok(Some(certificate)) => Ok(("self-signed, ", certificate)),
            Ok(None) => return DoctorFinding::new(what, FindingState::Ok, "self-signed; made at the first start"),
            Err(error) => Err(error),
        },
        TlsSetting::Files { certificate, key } => tls::read_files(certificate, key).map(|loaded| ("", loaded)),
    };
    match finding {
        Ok((kind, certificate)) => {
            let sha256 = CertificateFingerprint(certificate.sha256());
            DoctorFinding::new(what, FindingState::Ok, format!("{kind}SHA-256 {sha256}"))
        }
        Err(error) => DoctorFinding::new(what, FindingState::Broken, format!("{error:#}"))
            .advise("without a usable certificate the server does not start"),
    }
}

/// Whether the address is free, and the Greenroom server that has it, if one does.
pub async fn address(config: &AppConfig) -> (DoctorFinding, Option<FoundServer>) {
    let listen = config.server.listen;
    let finding = |state, detail: String| DoctorFinding::new("address", state, detail);
    match TcpListener::bind(listen) {
        Ok(_) => return (finding(FindingState::Ok, format!("{listen} is free")), None),
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            let detail = format!("cannot serve on {listen}: {error}; choose another with --listen");
            return (finding(FindingState::Broken, detail), None);
        }
        Err(_) => {}
    }
    let running = tokio::time::timeout(ANSWER, running_server(config)).await.ok().flatten();
    let finding = match &running {
        Some(server) => finding(FindingState::Ok, format!("Greenroom {} answers on {listen}", server.version)),
        None => {
            finding(FindingState::Broken, format!("something else answers on {listen}; choose another with --listen"))
        }
    };
    (finding, running)
}

/// What a Greenroom server on this machine says of itself.
pub struct FoundServer {
    version: String,
    /// `None`: it has no TLS.
    certificate: Option<CertificateFingerprint>,
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

async fn running_server(config: &AppConfig) -> Option<FoundServer> {
    // Flags of the running server may differ from the configuration: its certificate says whether it has TLS.
    let certificate = CertificateFingerprint::of_local_server(&config.store.data_dir).ok()?;
    let (tls, trust) = match certificate {
        Some(fingerprint) => (TlsSetting::SelfSigned, ServerTrust::Certificate(fingerprint)),
        None => (TlsSetting::Off, ServerTrust::System),
    };
    let server = sign_in::local_url(config.server.listen, &tls);
    let client = ApiClient::without_credential(&server, trust).ok()?;
    let OpenApiDocument { info } = client.get("/openapi.json", &[]).await.ok()?;
    info.title.contains("Greenroom").then_some(FoundServer { version: info.version, certificate })
}

#[cfg(test)]
mod tests {
    use super::{FindingState, address, data_directory, encryption};
    use crate::config::{AppConfig, ConfigFlags};
    use std::{net::TcpListener, path::Path};

    fn config(listen: &str, data_dir: &Path) -> AppConfig {
        let (listen, data_dir) = (Some(listen.to_owned()), Some(data_dir.display().to_string()));
        let flags = ConfigFlags { listen, data_dir, ..ConfigFlags::default() };
        AppConfig::load_from(&flags, [], Path::new("/nowhere")).unwrap()
    }

    #[test]
    fn m13_plain_http_on_an_open_address_and_a_bad_certificate_are_broken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(encryption(&config("127.0.0.1:0", folder.path())).state, FindingState::Ok);
        let open = encryption(&config("0.0.0.0:0", folder.path()));
        assert_eq!(open.state, FindingState::Broken, "{}", open.summary());
        let flags = ConfigFlags {
            tls_certificate: Some("/nowhere/a.pem".into()),
            tls_key: Some("/nowhere/b.pem".into()),
            ..ConfigFlags::default()
        };
        let bad = encryption(&AppConfig::load_from(&flags, [], Path::new("/nowhere")).unwrap());
        assert!(bad.state == FindingState::Broken && bad.summary().contains("/nowhere/a.pem"), "{}", bad.summary());
    }

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
        let dir = tempfile::tempdir().unwrap();
        let address = async |listen: &str| address(&config(listen, dir.path())).await.0;
        assert_eq!(address("127.0.0.1:0").await.state, FindingState::Ok);
        let answering = std::thread::spawn(move || drop(listener.accept()));
        assert_eq!(address(&taken.to_string()).await.state, FindingState::Broken, "it is not a Greenroom server");
        answering.join().unwrap();
        assert_eq!(address("192.0.2.1:1").await.state, FindingState::Broken);
    }
}
