//! Embeds the web app in the binary if it was built (`cargo xtask web` creates `web/dist`). Without it the server has
//! plain pages; the first one says how to build the web app.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    // Read now and not when this script was compiled: two checkouts may share a target folder.
    let built = from_cargo("CARGO_MANIFEST_DIR")?.join("../../web/dist");
    println!("cargo::rerun-if-changed={}", built.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if built.join("index.html").is_file() {
        gather(&built, &built, &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for (path, file) in files {
        writeln!(list, "    ({path:?}, include_bytes!({:?}) as &[u8]),", file.display().to_string())
            .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(from_cargo("OUT_DIR")?.join("web_app.rs"), list)
}

/// A folder that cargo passes to build scripts.
fn from_cargo(variable: &str) -> io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "cargo passes its settings in the environment")]
    let folder = std::env::var_os(variable);
    folder.map(PathBuf::from).ok_or_else(|| io::Error::other(format!("cargo did not set {variable}")))
}

fn gather(folder: &Path, root: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, root, files)?;
            continue;
        }
        let name = path.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().into_owned();
        files.push((name, path.canonicalize()?));
    }
    Ok(())
}
