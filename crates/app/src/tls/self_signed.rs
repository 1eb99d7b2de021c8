//! A certificate that the server signs itself, for a network without a public name: its files in the data folder, and when
//! it is renewed. [`super::certificate_der`] writes it.

use super::certificate_der::{self, SubjectName};
use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use domain::time::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use server::listen::tls::ServerCertificate;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The longest time that all systems accept.
const LIFETIME: Duration = Duration::from_secs(825 * 24 * 3600);
/// Renewed when less than this is left.
const RENEWAL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The paths of the certificate and its key.
pub fn files(data_dir: &Path) -> (PathBuf, PathBuf) {
    let folder = data_dir.join("tls");
    (folder.join("self-signed.crt"), folder.join("self-signed.key"))
}

/// The certificate of the data folder. Makes one if there is none, or if it has become unusable: it ends soon, it lacks a
/// name, or its files do not belong together.
pub fn ensure(data_dir: &Path, names: &[String], now: Timestamp) -> anyhow::Result<ServerCertificate> {
    let (certificate_file, key_file) = files(data_dir);
    if let Some(current) = read(&certificate_file, &key_file)?
        && is_good(current.der(), names, now + RENEWAL)
    {
        return Ok(current);
    }
    let made = make(names, now).context("cannot make a certificate")?;
    let write = || {
        DirBuilder::new().recursive(true).mode(0o700).create(data_dir.join("tls"))?;
        // If only the first of them is written, they do not belong together, and the next start makes new ones.
        replace_file(&key_file, &made.key_pem)?;
        replace_file(&certificate_file, &made.certificate_pem)
    };
    write().with_context(|| format!("cannot write {}", certificate_file.display()))?;
    Ok(ServerCertificate::from_pem(made.certificate_pem.as_bytes(), made.key_pem.as_bytes())?)
}

/// The names that clients use for this server.
pub fn names(listen: SocketAddr, public_hosts: &[String]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    names.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|ip| ip.to_string()));
    let address = listen.ip().to_canonical();
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    names.extend(host_name());
    names.extend(public_hosts.iter().map(|host| host.trim_matches(['[', ']']).to_owned()));
    names.sort();
    names.dedup();
    names
}

/// The name of this machine, if it can be part of a certificate.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_ascii_lowercase();
    ServerName::try_from(name.clone()).is_ok().then_some(name)
}

struct SelfSignedCertificate {
    certificate_pem: String,
    key_pem: String,
}

fn make(names: &[String], now: Timestamp) -> anyhow::Result<SelfSignedCertificate> {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok().context("no random numbers")?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).ok().context("a new key was rejected")?;
    let subject_names: Vec<SubjectName> = names.iter().map(|name| SubjectName::parse(name)).collect();
    // Clocks of other machines may be behind.
    let begins = Timestamp::from_millis(now.as_millis().saturating_sub(i64::try_from(DAY.as_millis())?));
    let der = certificate_der::self_signed(&pair, &subject_names, begins, now + LIFETIME, &random)?;
    Ok(SelfSignedCertificate { certificate_pem: pem("CERTIFICATE", &der), key_pem: pem("PRIVATE KEY", key.as_ref()) })
}

/// Whether a client that trusts this certificate accepts it at that time, for each of the names.
fn is_good(certificate: &CertificateDer<'static>, names: &[String], at: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    let Ok(()) = roots.add(certificate.clone()) else { return false };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or_default()));
    names.iter().all(|name| {
        ServerName::try_from(name.as_str())
            .is_ok_and(|name| verifier.verify_server_cert(certificate, &[], &name, &[], at).is_ok())
    })
}

/// `None` if there is none, or if it cannot be used.
pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Option<ServerCertificate>> {
    let (certificates, key_text) = match (fs::read(certificate), fs::read(key)) {
        (Ok(certificates), Ok(key)) => (certificates, key),
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        (Err(error), _) | (_, Err(error)) => {
            return Err(error).with_context(|| format!("cannot read {} and its key", certificate.display()));
        }
    };
    match ServerCertificate::from_pem(&certificates, &key_text) {
        Ok(loaded) => Ok(Some(loaded)),
        Err(error) => {
            tracing::warn!(%error, file = %certificate.display(), "the self-signed certificate is replaced");
            Ok(None)
        }
    }
}

/// Writes beside the file first, so that nobody reads a part of it.
pub fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    let draft = file.with_extension(format!("{}", uuid::Uuid::now_v7()));
    let mut written = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
    written.write_all(text.as_bytes()).and_then(|()| written.sync_all())?;
    fs::rename(&draft, file)
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{DAY, LIFETIME, RENEWAL, ensure, files, is_good, names};
    use domain::time::Timestamp;
    use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

    fn wanted(listen: &str) -> Vec<String> {
        names(listen.parse().unwrap(), &["green.example.org".to_owned(), "[2001:db8::7]".to_owned()])
    }

    #[test]
    fn m13_a_self_signed_certificate_is_private_kept_and_renewed_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, names, now) = (folder.path(), wanted("192.168.1.4:7878"), Timestamp::now());
        let sha256 = |names: &[String], now| ensure(folder, names, now).unwrap().sha256();
        let first = sha256(&names, now);
        let (certificate, key) = files(folder);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder.join("tls")), mode(&certificate), mode(&key)), (0o700, 0o600, 0o600));
        assert_eq!(sha256(&names, now), first, "it is kept");
        assert_eq!(sha256(&names, now + (LIFETIME - RENEWAL - DAY)), first);
        let renewed = sha256(&names, now + (LIFETIME - RENEWAL + DAY));
        assert_ne!(renewed, first, "it ends in less than a month");
        let other = wanted("10.0.0.9:7878");
        let with_address = sha256(&other, now + DAY);
        assert_ne!(with_address, renewed, "the address is new");
        fs::write(&key, "").unwrap();
        assert_ne!(sha256(&other, now + DAY), with_address, "the key is lost");
        assert_eq!(fs::read_dir(folder.join("tls")).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn m13_a_self_signed_certificate_is_for_its_names_and_its_time_only() {
        let folder = tempfile::tempdir().unwrap();
        let (names, now) = (wanted("0.0.0.0:7878"), Timestamp::now());
        let made = ensure(folder.path(), &names, now).unwrap();
        for name in ["localhost", "127.0.0.1", "::1", "green.example.org", "2001:db8::7"] {
            assert!(is_good(made.der(), &[name.to_owned()], now), "{name}");
        }
        for name in ["evil.example", "127.0.0.2", "0.0.0.0", "sub.green.example.org"] {
            assert!(!is_good(made.der(), &[name.to_owned()], now), "{name}");
        }
        let early = Timestamp::from_millis(now.as_millis() - 2 * 24 * 3_600_000);
        assert!(!is_good(made.der(), &names, now + LIFETIME + DAY) && !is_good(made.der(), &names, early));
    }
}
