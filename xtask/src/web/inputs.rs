//! A digest of everything that the web app is built from.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

/// In `web/`. Tests are among them, for they lie beside what they test.
const INPUTS: &[&str] =
    &["index.html", "package.json", "package-lock.json", "public", "scripts", "src", "tsconfig.json", "vite.config.ts"];

pub fn digest(web: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    for input in INPUTS {
        let path = web.join(input);
        if path.exists() {
            add(&path, input, &mut hasher)?;
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn add(path: &Path, name: &str, hasher: &mut DefaultHasher) -> io::Result<()> {
    if !path.is_dir() {
        (name, fs::read(path)?).hash(hasher);
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name());
    }
    names.sort();
    names.iter().try_for_each(|child| add(&path.join(child), &format!("{name}/{}", child.to_string_lossy()), hasher))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_source_changes_the_digest() {
        let web = std::env::temp_dir().join(format!("xtask-web-{}", std::process::id()));
        fs::create_dir_all(web.join("src/app")).unwrap();
        fs::write(web.join("src/app/a.ts"), "1").unwrap();
        let first = digest(&web).unwrap();
        fs::create_dir_all(web.join("dist")).unwrap();
        fs::write(web.join("dist/index.html"), "built").unwrap();
        assert_eq!(digest(&web).unwrap(), first, "what was built is not a source");
        fs::write(web.join("src/app/a.ts"), "2").unwrap();
        let changed = digest(&web).unwrap();
        fs::rename(web.join("src/app/a.ts"), web.join("src/app/b.ts")).unwrap();
        let renamed = digest(&web).unwrap();
        assert!(first != changed && changed != renamed && first != renamed);
        fs::remove_dir_all(&web).unwrap();
    }
}
