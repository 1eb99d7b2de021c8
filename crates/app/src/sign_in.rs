//! The sign-in link of a start: printed, and opened in the desktop's browser where there is one. It is never logged.

use crate::config::{AppConfig, TlsSetting};
use anyhow::Context as _;
use std::{
    fs::{self, File},
    io::{IsTerminal as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

const OPENER: &str = "xdg-open";
/// Other users see the arguments of a program, but not this file: it leads the browser to the link.
const PAGE: &str = "sign-in.html";

/// The address for a browser. With the operator's certificate it is the server's public name, if it has one: the certificate
/// is for that name.
pub fn browser_url(config: &AppConfig, listen: SocketAddr) -> String {
    match (&config.tls, config.server.public_hosts.first()) {
        (TlsSetting::Files { .. }, Some(name)) => format!("https://{name}:{}", listen.port()),
        _ => local_url(listen, &config.tls),
    }
}

/// The address at which programs on this machine reach the server.
pub fn local_url(listen: SocketAddr, tls: &TlsSetting) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let scheme = if *tls == TlsSetting::Off { "http" } else { "https" };
    format!("{scheme}://{}", SocketAddr::new(ip, listen.port()))
}

/// Whether systemd keeps what the server prints.
pub fn is_output_logged(config: &AppConfig) -> bool {
    config.environment.get("JOURNAL_STREAM").is_some() && !std::io::stdout().is_terminal()
}

/// Whether a person at a desktop started the server.
pub fn has_desktop(config: &AppConfig) -> bool {
    let is_set = |name: &str| config.environment.get(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && opener(config).is_some()
}

/// Opens the link in the browser, which may take its time.
pub fn open(config: &AppConfig, link: &str) -> anyhow::Result<()> {
    let Some(opener) = opener(config) else { return Ok(()) };
    let page = config.store.data_dir.join(PAGE);
    write_page(&page, link).with_context(|| format!("cannot write {}", page.display()))?;
    // Reaped by the runtime when it ends.
    let started =
        Command::new(opener).arg(&page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(drop).with_context(|| format!("cannot start {OPENER}"))
}

/// The code in it works once and for 10 minutes, so it may stay.
fn write_page(page: &Path, link: &str) -> std::io::Result<()> {
    match fs::remove_file(page) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(page)?;
    // The link has no characters that HTML gives a meaning to.
    write!(
        file,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Greenroom</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\">\n<p><a href=\"{link}\">Sign in to Greenroom</a></p>\n"
    )
}

fn opener(config: &AppConfig) -> Option<PathBuf> {
    let path = config.environment.get("PATH").unwrap_or_default();
    std::env::split_paths(path).map(|folder| folder.join(OPENER)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::{TlsSetting, local_url, write_page};
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_link_is_for_this_machine() {
        for (listen, url) in [
            ("127.0.0.1:7878", "http://127.0.0.1:7878"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
            ("192.168.1.4:80", "http://192.168.1.4:80"),
        ] {
            assert_eq!(local_url(listen.parse().unwrap(), &TlsSetting::Off), url);
            let encrypted = local_url(listen.parse().unwrap(), &TlsSetting::SelfSigned);
            assert_eq!(encrypted, url.replace("http:", "https:"));
        }
    }

    #[test]
    fn the_page_with_the_link_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("sign-in.html");
        for link in ["http://127.0.0.1:1/sign-in#code=one", "http://127.0.0.1:1/sign-in#code=two"] {
            write_page(&page, link).unwrap();
            assert!(std::fs::read_to_string(&page).unwrap().contains(link));
            assert_eq!(std::fs::metadata(&page).unwrap().mode() & 0o777, 0o600);
        }
    }
}
