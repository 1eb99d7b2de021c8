//! `[tls]`: where the server's certificate comes from.

use super::{AppConfigError, path, reader::ConfigReader};
use std::path::PathBuf;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsSetting {
    Off,
    Files {
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Made by the server and kept in the data folder.
    SelfSigned,
}

impl TlsSetting {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        let is_self_signed = from.boolean("tls.self_signed")?;
        let empty = |text: &str| text.is_empty().then_some(());
        if is_self_signed {
            from.parsed("tls.certificate", "empty with tls.self_signed", empty)?;
            from.parsed("tls.key", "empty with tls.self_signed", empty)?;
            return Ok(Self::SelfSigned);
        }
        if from.text("tls.certificate", "the path of a PEM file, or empty")?.is_empty() {
            from.parsed("tls.key", "empty without tls.certificate", empty)?;
            return Ok(Self::Off);
        }
        Ok(Self::Files {
            certificate: from.parsed("tls.certificate", "the path of a PEM file, or empty", path)?,
            key: from.parsed("tls.key", "the path of the PEM file with the key of tls.certificate", path)?,
        })
    }
}
