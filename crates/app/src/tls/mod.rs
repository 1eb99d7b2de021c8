//! The server's certificate: from the operator's files or self-signed, loaded at the start, and replaced while the server runs
//! when its files change or it ends soon.
//!
//! Start at [`load`]; [`watch`] does the rest. The handshake is in `server::listen::tls`.

mod certificate_der;
mod fingerprint;
mod self_signed;

pub use fingerprint::CertificateFingerprint;
pub use self_signed::{ensure as ensure_self_signed, files as self_signed_files};

use crate::config::{AppConfig, TlsSetting};
use anyhow::Context as _;
use domain::time::Timestamp;
use fingerprint::served_file;
use server::{
    Encryption,
    listen::tls::{ServerCertificate, ServerTls},
};
use std::{fs, io, net::SocketAddr, os::unix::fs::MetadataExt as _, path::Path, time::Duration};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How often a self-signed certificate is checked for its end.
const CHECK_END: Duration = Duration::from_secs(3600);

/// Who encrypts the connections of clients, with the certificate if it is this server.
pub fn load(config: &AppConfig, address: SocketAddr) -> anyhow::Result<Encryption> {
    let sends_hsts = match &config.tls {
        TlsSetting::Off if config.server.behind_tls_proxy => return Ok(Encryption::Proxy),
        TlsSetting::Off => return Ok(Encryption::None),
        TlsSetting::Files { .. } => true,
        // A browser that was told to insist on a valid certificate would lock its user out.
        TlsSetting::SelfSigned => false,
    };
    Ok(Encryption::Tls(ServerTls::new(certificate(config, address)?, sends_hsts)?))
}

/// The certificate that the configuration names.
pub fn certificate(config: &AppConfig, address: SocketAddr) -> anyhow::Result<ServerCertificate> {
    match &config.tls {
        TlsSetting::Files { certificate, key } => read_files(certificate, key),
        TlsSetting::SelfSigned => {
            let names = self_signed::names(address, &config.server.public_hosts);
            ensure_self_signed(&config.store.data_dir, &names, Timestamp::now())
        }
        TlsSetting::Off => anyhow::bail!("the server has no TLS"),
    }
}

/// The self-signed certificate of the data folder, if it was made.
pub fn existing_self_signed(data_dir: &Path) -> anyhow::Result<Option<ServerCertificate>> {
    let (certificate, key) = self_signed_files(data_dir);
    self_signed::read(&certificate, &key)
}

pub fn read_files(certificate: &Path, key: &Path) -> anyhow::Result<ServerCertificate> {
    let read = |file: &Path| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    ServerCertificate::from_pem(&read(certificate)?, &read(key)?)
        .with_context(|| format!("the certificate {} with the key {}", certificate.display(), key.display()))
}

/// Tells the command line on this machine which certificate is the server's, or that it has none.
pub fn publish(config: &AppConfig, encryption: &Encryption) -> anyhow::Result<()> {
    let file = served_file(&config.store.data_dir);
    let published = match encryption.tls() {
        Some(tls) => write_fingerprint(&file, &tls.certificate()),
        None => match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    published.with_context(|| format!("cannot write {}", file.display()))
}

fn write_fingerprint(file: &Path, certificate: &ServerCertificate) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    self_signed::replace_file(file, &format!("{}\n", CertificateFingerprint(certificate.sha256())))
}

/// Replaces the certificate when its files change, or before a self-signed one ends. A new one that cannot be used is
/// reported once, and the old one stays. Open connections are not affected.
pub async fn watch(config: AppConfig, address: SocketAddr, tls: ServerTls, cancel: CancellationToken) {
    let period = if config.tls == TlsSetting::SelfSigned { CHECK_END } else { LOOK };
    let mut tick = tokio::time::interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The files may have changed between the load and this moment; the first look compares fingerprints only.
    let mut seen = None;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = cancel.cancelled() => return,
        }
        let state = file_states(&config.tls);
        if state.is_some() && state == seen {
            continue;
        }
        seen = state;
        let (config, current) = (config.clone(), tls.certificate().sha256());
        let loaded = tokio::task::spawn_blocking(move || {
            let certificate = certificate(&config, address)?;
            if certificate.sha256() != current {
                write_fingerprint(&served_file(&config.store.data_dir), &certificate)?;
            }
            anyhow::Ok(certificate)
        });
        match loaded.await {
            Ok(Ok(certificate)) => {
                let sha256 = certificate.sha256();
                // Also when only the chain is new.
                tls.replace(certificate);
                if sha256 != current {
                    tracing::info!(sha256 = %CertificateFingerprint(sha256), "the certificate was replaced");
                }
            }
            Ok(Err(error)) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "the new certificate cannot be used; the old one stays");
            }
            Err(error) => tracing::error!(%error, "the certificate could not be checked"),
        }
    }
}

/// What changes when a file is written or replaced.
#[derive(PartialEq, Eq)]
struct FileState {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

/// The states of the certificate's file and the key's; `None` if it is self-signed.
fn file_states(setting: &TlsSetting) -> Option<[Option<FileState>; 2]> {
    let state = |file: &Path| {
        let found = fs::metadata(file).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(FileState { inode: found.ino(), length: found.len(), modified })
    };
    match setting {
        TlsSetting::Files { certificate, key } => Some([state(certificate), state(key)]),
        TlsSetting::SelfSigned | TlsSetting::Off => None,
    }
}
