//! TLS on the listening socket: the certificate, which can be replaced while connections are open, and the handshake.

use super::stall::StallTimeoutStream;
use rustls::{
    ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};
use std::{
    fmt, io,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The first byte of every TLS connection: a record of the handshake.
const HANDSHAKE_RECORD: u8 = 22;
/// How much of a plain request is read before the connection is closed, so that the client gets the answer.
const LARGEST_PLAIN_REQUEST: u64 = 64 * 1024;
const HTTPS_REQUIRED: &str = r#"{"type":"urn:greenroom:problem:https_required","title":"Bad Request","status":400,"code":"https_required","detail":"This port speaks https only: begin the address with https://."}"#;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the certificate file is not PEM: {0}")]
    Certificate(pem::Error),
    #[error("the certificate file holds no certificate")]
    NoCertificate,
    #[error("the key file holds no private key in PEM, or it is encrypted: {0}")]
    Key(pem::Error),
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(rustls::Error),
}

/// A certificate with its chain and its private key, which belong together.
#[derive(Clone)]
pub struct ServerCertificate {
    certified: Arc<CertifiedKey>,
    sha256: [u8; 32],
}

impl ServerCertificate {
    /// Reads two PEM files: the certificate, followed by those that lead to its authority, and the key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>().map_err(TlsError::Certificate)?;
        let first = chain.first().ok_or(TlsError::NoCertificate)?;
        let sha256 = Sha256::digest(first).into();
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(TlsError::Unusable)?;
        Ok(Self { certified: Arc::new(certified), sha256 })
    }

    /// The fingerprint: the SHA-256 of the certificate itself.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The certificate itself.
    pub fn der(&self) -> &CertificateDer<'static> {
        // A chain is never empty: `from_pem` has checked it.
        &self.certified.cert[0]
    }
}

/// Without the key.
impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

/// The certificate for the next handshake. Open connections do not need it any more.
#[derive(Debug)]
struct CurrentCertificate(RwLock<ServerCertificate>);

impl CurrentCertificate {
    fn get(&self) -> ServerCertificate {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get().certified)
    }
}

/// TLS of a server. Clones share the certificate.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    current: Arc<CurrentCertificate>,
    /// Whether browsers are told to use nothing but https for this host from now on.
    pub sends_hsts: bool,
}

impl ServerTls {
    pub fn new(certificate: ServerCertificate, sends_hsts: bool) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentCertificate(RwLock::new(certificate)));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let resolver: Arc<dyn ResolvesServerCert> = current.clone();
        let mut config = builder.map_err(TlsError::Unusable)?.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), current, sends_hsts })
    }

    pub fn certificate(&self) -> ServerCertificate {
        self.current.get()
    }

    /// Uses another certificate from the next handshake on.
    pub fn replace(&self, certificate: ServerCertificate) {
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    /// Performs the handshake. Returns `None` if the client does not speak TLS; it has been told so.
    pub(super) async fn accept<P: Unpin>(
        &self,
        stream: TcpStream,
        wrap: impl FnOnce(TcpStream) -> StallTimeoutStream<P>,
    ) -> io::Result<Option<TlsStream<StallTimeoutStream<P>>>> {
        let mut first = [0];
        // Nothing: a check of a balancer, or a client that has changed its mind.
        if stream.peek(&mut first).await? == 0 {
            return Ok(None);
        }
        if first[0] == HANDSHAKE_RECORD {
            return TlsAcceptor::from(Arc::clone(&self.config)).accept(wrap(stream)).await.map(Some);
        }
        // The first letter of a method; anything else is no HTTP either and gets no answer.
        if first[0].is_ascii_uppercase() {
            refuse_plain_http(stream).await?;
        }
        Ok(None)
    }
}

async fn refuse_plain_http(mut stream: TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{HTTPS_REQUIRED}",
        HTTPS_REQUIRED.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // A socket that is closed with unread bytes resets the connection, and the client may lose the answer.
    let mut unread = stream.take(LARGEST_PLAIN_REQUEST);
    tokio::io::copy(&mut unread, &mut tokio::io::sink()).await.map(drop)
}
