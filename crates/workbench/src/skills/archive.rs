//! Packs and unpacks skills as zip archives. The metadata of an archive is not trusted: names, counts and sizes are
//! checked while it is unpacked, and nothing is written to disk.

use super::folder::{SkillBundle, SkillBundleBuilder, SkillBundleError, too_large};
use domain::skill::{MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile, SkillName};
use std::io::{Cursor, Read as _, Write as _};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// Includes folders and ignored files.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// Compression ratio limit for archives that unpack to more than [`RATIO_EXEMPT_BYTES`].
const MAX_RATIO: u64 = 100;
const RATIO_EXEMPT_BYTES: u64 = 256 * 1024;

/// Packs a skill into a zip archive. Blocks while it compresses.
pub fn pack(name: &SkillName, document: &str, files: &[SkillFile]) -> Result<Vec<u8>, SkillBundleError> {
    let failed = |error: &dyn std::fmt::Display| SkillBundleError(format!("could not create the archive: {error}"));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let document = (SKILL_FILE, false, document.as_bytes());
    let others = files.iter().map(|file| (file.path.as_str(), file.executable, file.content.as_slice()));
    for (path, executable, content) in std::iter::once(document).chain(others) {
        let mode = if executable { 0o755 } else { 0o644 };
        // A fixed date, so that the same skill gives the same archive.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(mode);
        archive.start_file(format!("{name}/{path}"), options).map_err(|error| failed(&error))?;
        archive.write_all(content).map_err(|error| failed(&error))?;
    }
    Ok(archive.finish().map_err(|error| failed(&error))?.into_inner())
}

/// Unpacks a zip archive. Blocks while it decompresses.
pub fn unpack(bytes: &[u8]) -> Result<SkillBundle, SkillBundleError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    if archive.len() > MAX_ENTRIES {
        return Err(SkillBundleError(format!("the archive has more than {MAX_ENTRIES} entries")));
    }
    let root = root(&mut archive)?;
    let most = MAX_TOTAL_BYTES.min(RATIO_EXEMPT_BYTES.max((bytes.len() as u64).saturating_mul(MAX_RATIO)));
    let (mut gathered, mut left) = (SkillBundleBuilder::default(), most);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| unreadable(&error))?;
        let name = entry.name().map_err(|error| unreadable(&error))?.into_owned();
        let Some(path) = name.strip_prefix(&root) else { continue };
        if entry.is_dir() {
            continue;
        }
        if entry.is_symlink() {
            return Err(SkillBundleError(format!(
                "{} is a link; put the file itself into the archive",
                excerpt(&name)
            )));
        }
        let (path, executable) = (path.to_owned(), entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0));
        let mut content = Vec::new();
        let read = entry.take(left + 1).read_to_end(&mut content);
        read.map_err(|error| SkillBundleError(format!("could not unpack {}: {error}", excerpt(&name))))?;
        left = left.checked_sub(content.len() as u64).ok_or_else(|| match most < MAX_TOTAL_BYTES {
            true => SkillBundleError(format!("it unpacks to more than {MAX_RATIO} times its size")),
            false => too_large(),
        })?;
        gathered.add(&path, executable, content)?;
    }
    gathered.finish(root.strip_suffix('/').map(str::to_owned))
}

/// Returns the folder of the `SKILL.md`, with a trailing slash: the top of the archive, or one folder at the top.
fn root(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Result<String, SkillBundleError> {
    let mut found: Option<String> = None;
    for index in 0..archive.len() {
        let name = match archive.name_for_index(index) {
            Some(name) => name.map_err(|error| unreadable(&error))?.into_owned(),
            None => continue,
        };
        let Some(root) = name.strip_suffix(SKILL_FILE).filter(|root| root.matches('/').count() <= 1) else { continue };
        if root.starts_with("__MACOSX") || !(root.is_empty() || root.ends_with('/')) {
            continue;
        }
        match &found {
            Some(other) if other != root && !other.is_empty() && !root.is_empty() => {
                return Err(SkillBundleError(
                    "the archive contains more than one skill; import them one by one".into(),
                ));
            }
            Some(other) if other.is_empty() => {}
            _ => found = Some(root.to_owned()),
        }
    }
    found
        .ok_or_else(|| SkillBundleError("the archive has no SKILL.md at its top level or in a top-level folder".into()))
}

fn unreadable(error: &ZipError) -> SkillBundleError {
    SkillBundleError(format!("it is not a zip archive, or the archive is damaged: {error}"))
}

fn excerpt(name: &str) -> String {
    format!("{:?}", name.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};
    use domain::skill::SkillFile;
    use std::io::{Cursor, Write as _};
    use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

    const DOCUMENT: &str = "---\nname: a\ndescription: b\n---\nbody";

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
            archive.start_file(*name, options).unwrap();
            archive.write_all(content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    fn refusal(entries: &[(&str, &[u8])]) -> String {
        unpack(&archive(entries)).unwrap_err().to_string()
    }

    #[test]
    fn a_packed_skill_round_trips() {
        let file =
            |path: &str, executable| SkillFile { path: path.parse().unwrap(), executable, content: vec![0, 1, 255] };
        let files = [file("a.bin", false), file("scripts/run.sh", true)];
        let bytes = pack(&"my-skill".parse().unwrap(), DOCUMENT, &files).unwrap();
        let bundle = unpack(&bytes).unwrap();
        assert_eq!((bundle.document.as_str(), bundle.folder.as_deref()), (DOCUMENT, Some("my-skill")));
        assert_eq!(bundle.files, files);
        assert_eq!(pack(&"my-skill".parse().unwrap(), DOCUMENT, &files).unwrap(), bytes, "the same archive each time");
    }

    #[test]
    fn finds_a_skill_at_the_top_or_in_one_folder_and_skips_hidden_files() {
        let top = unpack(&archive(&[("SKILL.md", b"x"), ("ref/a.md", b"y"), (".DS_Store", b"z")])).unwrap();
        assert_eq!((top.folder, top.files.len(), top.skipped), (None, 1, 1));
        let inner =
            unpack(&archive(&[("s/SKILL.md", b"x"), ("s/.git/a", b"y"), ("__MACOSX/s/SKILL.md", b"z")])).unwrap();
        assert_eq!((inner.folder.as_deref(), inner.document.as_str(), inner.files.len()), (Some("s"), "x", 0));
        assert!(refusal(&[("a/SKILL.md", b"x"), ("b/SKILL.md", b"x")]).contains("more than one"));
        assert!(refusal(&[("a/b/SKILL.md", b"x")]).contains("no SKILL.md"));
        assert!(refusal(&[("README.md", b"x")]).contains("no SKILL.md"));
        assert!(refusal(&[("SKILL.md", b"\xff")]).contains("UTF-8"));
        assert!(unpack(b"PK no zip").unwrap_err().to_string().contains("not a zip archive"));
    }

    #[test]
    fn paths_and_links_out_of_the_folder_are_rejected() {
        for name in ["../evil", "a/../../evil", "/etc/passwd", "s/../SKILL.md", "a\\..\\b", "C:evil", "a//b"] {
            let error = refusal(&[("SKILL.md", b"x"), (name, b"y")]);
            assert!(error.contains("is not a valid path"), "{name}: {error}");
        }
        let mut links = ZipWriter::new(Cursor::new(Vec::new()));
        links.start_file("SKILL.md", SimpleFileOptions::default()).unwrap();
        links.write_all(b"x").unwrap();
        links.add_symlink("a", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let error = unpack(&links.finish().unwrap().into_inner()).unwrap_err().to_string();
        assert!(error.contains("is a link"), "{error}");
    }

    #[test]
    fn archive_bombs_are_rejected() {
        let zeros = vec![0_u8; 3 * 1024 * 1024];
        assert!(refusal(&[("SKILL.md", b"x"), ("a", &zeros)]).contains("100 times its size"));
        let names: Vec<String> = (0..201).map(|n| format!("f{n}")).collect();
        let mut many: Vec<(&str, &[u8])> = vec![("SKILL.md", b"x")];
        many.extend(names.iter().map(|name| (name.as_str(), b"y".as_slice())));
        assert!(refusal(&many).contains("more than 200 files"));
        let entries: Vec<String> = (0..900).map(|n| format!(".f{n}")).collect();
        let most: Vec<(&str, &[u8])> = entries.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
        assert!(refusal(&most).contains("entries"));
    }
}
