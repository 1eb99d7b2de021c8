//! Which certificate the command line accepts from a server: one that the system trusts, one of a given authority, or exactly
//! one. There is no way to accept any.

use super::{is_loopback, local_data_dir};
use crate::{
    cli::{ServerArgs, exit::UsageError},
    tls::CertificateFingerprint,
};
use reqwest::{Certificate, ClientBuilder, Url};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{self, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

pub enum ServerTrust {
    System,
    Authorities(Vec<Certificate>),
    Certificate(CertificateFingerprint),
}

impl ServerTrust {
    /// By default, on the server's own machine: the certificate that the server has written to its data folder.
    pub fn of(connection: &ServerArgs, base: &Url) -> anyhow::Result<Self> {
        if base.scheme() != "https" {
            return Ok(Self::System);
        }
        match (&connection.ca, connection.fingerprint) {
            (Some(file), _) => {
                let refused = |why: String| UsageError(format!("--ca {}: {why}", file.display()));
                let text = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
                match Certificate::from_pem_bundle(&text) {
                    Ok(authorities) if !authorities.is_empty() => Ok(Self::Authorities(authorities)),
                    _ => Err(refused("it holds no certificate in PEM".into()).into()),
                }
            }
            (None, Some(fingerprint)) => Ok(Self::Certificate(fingerprint)),
            (None, None) if is_loopback(base) => {
                let local = CertificateFingerprint::of_local_server(&local_data_dir(connection)?)?;
                Ok(local.map_or(Self::System, Self::Certificate))
            }
            (None, None) => Ok(Self::System),
        }
    }

    pub fn configure(self, builder: ClientBuilder) -> anyhow::Result<ClientBuilder> {
        Ok(match self {
            Self::System => builder,
            Self::Authorities(authorities) => builder.tls_certs_only(authorities),
            Self::Certificate(fingerprint) => {
                let provider = Arc::new(crypto::ring::default_provider());
                let verifier =
                    PinnedCertificate { fingerprint, algorithms: provider.signature_verification_algorithms };
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
                    .with_no_client_auth();
                builder.tls_backend_preconfigured(config)
            }
        })
    }
}

/// Accepts one certificate, whatever its names, its time and its authority. That the server has its key is checked as ever.
#[derive(Debug)]
struct PinnedCertificate {
    fingerprint: CertificateFingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match CertificateFingerprint::of(certificate) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
