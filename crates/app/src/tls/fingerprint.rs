//! The fingerprint of a certificate, as people compare it and as the command line pins it.

use anyhow::Context as _;
use rustls::pki_types::CertificateDer;
use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    str::FromStr,
};

/// In the data folder: the fingerprint of the certificate that the server uses, for the command line on this machine.
const SERVED: &str = "tls/served.sha256";
/// A fingerprint has 95 characters.
const MAX_FILE_BYTES: u64 = 200;

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CertificateFingerprint(pub [u8; 32]);

impl CertificateFingerprint {
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest.as_ref());
        Self(sha256)
    }

    /// Of the server that uses this data folder, if that has TLS.
    pub fn of_local_server(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let file = served_file(data_dir);
        let mut text = String::new();
        match fs::File::open(&file).and_then(|opened| opened.take(MAX_FILE_BYTES).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
        let fingerprint = text.trim().parse().map_err(anyhow::Error::msg);
        fingerprint.map(Some).with_context(|| format!("{} holds no fingerprint; restart the server", file.display()))
    }
}

pub fn served_file(data_dir: &Path) -> PathBuf {
    data_dir.join(SERVED)
}

/// As browsers and openssl show it.
impl fmt::Display for CertificateFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<String> = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        f.write_str(&bytes.join(":"))
    }
}

impl fmt::Debug for CertificateFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CertificateFingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "64 hexadecimal digits, with or without colons, as the server prints them at its start".to_owned();
        let digits: String = text.chars().filter(|letter| *letter != ':').collect();
        let is_hex = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let mut sha256 = [0; 32];
        for (byte, at) in sha256.iter_mut().zip((0..64).step_by(2)) {
            let pair = digits.get(at..at + 2).filter(|_| is_hex);
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong)?;
        }
        Ok(Self(sha256))
    }
}

#[cfg(test)]
mod tests {
    use super::CertificateFingerprint;

    #[test]
    fn a_fingerprint_is_read_as_it_is_printed_and_in_other_usual_forms() {
        let fingerprint = CertificateFingerprint(std::array::from_fn(|index| u8::try_from(index * 7).unwrap()));
        let text = fingerprint.to_string();
        assert!(text.starts_with("00:07:0E") && text.len() == 95, "{text}");
        for form in [text.clone(), text.to_lowercase(), text.replace(':', "")] {
            assert_eq!(form.parse(), Ok(fingerprint), "{form}");
        }
        for bad in ["", "00", &text[3..], &text.replace("00", "0x"), &format!("{text}:00"), &text.replace('0', "é")] {
            assert!(bad.parse::<CertificateFingerprint>().is_err(), "{bad}");
        }
    }
}
