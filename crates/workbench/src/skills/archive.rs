//! A skill as a zip archive. What an archive says of itself is not believed: names, counts and sizes are checked while it
//! is taken apart, and nothing of it touches the disk.

use super::folder::{Bundle, Gathered, Refusal, too_large};
use domain::skill::{MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile, SkillName};
use std::io::{Cursor, Read as _, Write as _};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// Folders and litter included.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// Unpacked to packed, for archives that unpack to more than [`FREE`].
const MAX_RATIO: u64 = 100;
const FREE: u64 = 256 * 1024;

/// Blocks while it compresses.
pub fn pack(name: &SkillName, document: &str, files: &[SkillFile]) -> Result<Vec<u8>, Refusal> {
    let failed = |error: &dyn std::fmt::Display| Refusal(format!("the archive cannot be made: {error}"));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let document = (SKILL_FILE, false, document.as_bytes());
    let others = files.iter().map(|file| (file.path.as_str(), file.executable, file.content.as_slice()));
    for (path, executable, content) in std::iter::once(document).chain(others) {
        let mode = if executable { 0o755 } else { 0o644 };
        // Without a date: the same skill is the same archive.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(mode);
        archive.start_file(format!("{name}/{path}"), options).map_err(|error| failed(&error))?;
        archive.write_all(content).map_err(|error| failed(&error))?;
    }
    Ok(archive.finish().map_err(|error| failed(&error))?.into_inner())
}

/// Takes an archive apart. Blocks while it decompresses.
pub fn unpack(bytes: &[u8]) -> Result<Bundle, Refusal> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    if archive.len() > MAX_ENTRIES {
        return Err(Refusal(format!("the archive has more than {MAX_ENTRIES} entries")));
    }
    let root = root(&mut archive)?;
    let most = MAX_TOTAL_BYTES.min(FREE.max((bytes.len() as u64).saturating_mul(MAX_RATIO)));
    let (mut gathered, mut left) = (Gathered::default(), most);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| unreadable(&error))?;
        let name = entry.name().map_err(|error| unreadable(&error))?.into_owned();
        let Some(path) = name.strip_prefix(&root) else { continue };
        if entry.is_dir() {
            continue;
        }
        if entry.is_symlink() {
            return Err(Refusal(format!("{} is a link; put the file itself into the archive", shown(&name))));
        }
        let (path, executable) = (path.to_owned(), entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0));
        let mut content = Vec::new();
        let read = entry.take(left + 1).read_to_end(&mut content);
        read.map_err(|error| Refusal(format!("{} cannot be unpacked: {error}", shown(&name))))?;
        left = left.checked_sub(content.len() as u64).ok_or_else(|| match most < MAX_TOTAL_BYTES {
            true => Refusal(format!("it unpacks to more than {MAX_RATIO} times its size")),
            false => too_large(),
        })?;
        gathered.add(&path, executable, content)?;
    }
    gathered.bundle(root.strip_suffix('/').map(str::to_owned))
}

/// The folder that the `SKILL.md` lies in, with its slash: the archive's top, or the only one there.
fn root(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Result<String, Refusal> {
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
                return Err(Refusal("there is more than one skill in it; send them one by one".into()));
            }
            Some(other) if other.is_empty() => {}
            _ => found = Some(root.to_owned()),
        }
    }
    found.ok_or_else(|| Refusal("there is no SKILL.md at its top or in one folder there".into()))
}

fn unreadable(error: &ZipError) -> Refusal {
    Refusal(format!("it is not a zip archive that can be read: {error}"))
}

fn shown(name: &str) -> String {
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
    fn what_is_packed_is_unpacked() {
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
    fn at_the_top_or_in_one_folder_and_litter_is_left_out() {
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
    fn nothing_leads_out_of_the_folder() {
        for name in ["../evil", "a/../../evil", "/etc/passwd", "s/../SKILL.md", "a\\..\\b", "C:evil", "a//b"] {
            let said = refusal(&[("SKILL.md", b"x"), (name, b"y")]);
            assert!(said.contains("cannot be the path"), "{name}: {said}");
        }
        let mut links = ZipWriter::new(Cursor::new(Vec::new()));
        links.start_file("SKILL.md", SimpleFileOptions::default()).unwrap();
        links.write_all(b"x").unwrap();
        links.add_symlink("a", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let said = unpack(&links.finish().unwrap().into_inner()).unwrap_err().to_string();
        assert!(said.contains("is a link"), "{said}");
    }

    #[test]
    fn bombs_are_stopped() {
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
