//! Certificates for servers with TLS, made as the server makes its own.
#![expect(clippy::expect_used, reason = "a test without its certificate has failed")]

use domain::time::Timestamp;
use greenroom::tls;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use server::listen::tls::ServerCertificate;
use std::{fs, path::PathBuf, sync::Arc};
use tempfile::TempDir;

/// A certificate for `127.0.0.1` and `localhost`, with its files.
pub struct TestCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
    _folder: TempDir,
}

impl TestCertificate {
    pub fn generate() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        tls::ensure_self_signed(folder.path(), &names, Timestamp::now()).expect("a certificate");
        let (certificate, key) = tls::self_signed_files(folder.path());
        Self { certificate, key, _folder: folder }
    }

    pub fn pem(&self) -> Vec<u8> {
        fs::read(&self.certificate).expect("the certificate")
    }

    pub fn load(&self) -> ServerCertificate {
        tls::read_files(&self.certificate, &self.key).expect("a usable certificate")
    }
}

/// TLS of a client that trusts the certificates of this PEM text and no others.
pub fn client_config(pem: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(builder.expect("versions of TLS").with_root_certificates(roots).with_no_client_auth())
}
