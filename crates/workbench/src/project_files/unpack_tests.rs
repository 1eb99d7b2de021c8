//! Archives of people who look for a way out of the folder, around the limits, or into the memory.

use super::{DiskQuota, ProjectFiles, ProjectFilesError, ProjectPath, QuotaLimits, UnpackedFiles};
use flate2::{Compression, write::GzEncoder};
use std::{
    fs,
    io::{Cursor, Write as _},
    os::unix::fs::symlink,
    path::Path,
    sync::Arc,
};
use tar::{EntryType, Header};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

const LIMITS: QuotaLimits = QuotaLimits { bytes: 300 << 20, files: 1000, free_bytes: 0 };

fn unpack(folder: &Path, archive: &[u8], to: &str) -> Result<UnpackedFiles, ProjectFilesError> {
    let files = ProjectFiles::open(folder, Arc::new(DiskQuota::default()), LIMITS).unwrap();
    let mut received = files.receive_archive()?;
    received.write(archive)?;
    files.unpack(&received, &ProjectPath::parse(to).unwrap())
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// With the name as it is: tar's own builder refuses evil ones.
fn tar_entry(archive: &mut tar::Builder<Vec<u8>>, kind: EntryType, name: &[u8], link: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o4777);
    if !link.is_empty() {
        header.set_link_name_literal(link).unwrap();
    }
    header.set_cksum();
    archive.append(&header, content).unwrap();
}

fn tar(entries: &[(EntryType, &[u8], &str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (kind, name, link, content) in entries {
        tar_entry(&mut archive, *kind, name, link, content);
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut found: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    found
}

#[test]
fn good_archives_are_unpacked_into_their_folder() {
    use EntryType as T;
    let plain = tar(&[
        (T::Directory, b"./docs/", "", b""),
        (T::Regular, b"./docs/a.md", "", b"alpha"),
        (T::Regular, b"b.txt", "", b"beta"),
        (T::Symlink, b"link", "/etc/passwd", b""),
        (T::Link, b"hard", "b.txt", b""),
        (T::Char, b"device", "", b""),
        (T::Fifo, b"pipe", "", b""),
    ]);
    let packed = gzip(&plain);
    let zipped = zip(&[("docs/a.md", b"alpha"), ("b.txt", b"beta")]);
    for archive in [&plain, &packed, &zipped] {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("in/docs")).unwrap();
        fs::write(place.path().join("in/docs/a.md"), "old").unwrap();
        let unpacked = unpack(place.path(), archive, "in").unwrap();
        assert_eq!(fs::read(place.path().join("in/docs/a.md")).unwrap(), b"alpha");
        assert_eq!(fs::read(place.path().join("in/b.txt")).unwrap(), b"beta");
        assert_eq!(
            (names(place.path()), names(&place.path().join("in"))),
            (vec!["in".into()], vec!["b.txt".into(), "docs".into()])
        );
        let mut stored: Vec<(&str, bool)> =
            unpacked.files.iter().map(|file| (file.path.as_str(), file.is_new)).collect();
        stored.sort();
        assert_eq!(stored, [("in/b.txt", true), ("in/docs/a.md", false)]);
        let expected: &[&str] = if archive == &zipped { &[] } else { &["link", "hard", "device", "pipe"] };
        assert_eq!(unpacked.skipped, expected);
    }
}

#[test]
fn of_a_name_that_occurs_twice_in_a_zip_the_last_file_counts() {
    // Writers refuse a name that occurs twice, so the second one is changed afterwards.
    let mut twice = zip(&[("first", b"x"), ("secnd", b"y")]);
    while let Some(at) = twice.windows(5).position(|name| name == b"secnd") {
        twice[at..at + 5].copy_from_slice(b"first");
    }
    let place = tempfile::tempdir().unwrap();
    assert_eq!(unpack(place.path(), &twice, "").unwrap().files.len(), 1);
    assert_eq!(std::fs::read(place.path().join("first")).unwrap(), b"y");
}

#[test]
fn evil_archives_leave_nothing() {
    use EntryType as T;
    let file = |name: &'static [u8]| tar(&[(T::Regular, b"fine", "", b"x"), (T::Regular, name, "", b"x")]);
    let bomb = zip(&[("fine", b"x"), ("bomb", &vec![0; 120 << 20])]);
    let mut long_name = tar::Builder::new(Vec::new());
    tar_entry(&mut long_name, T::GNULongName, b"././@LongLink", "", &vec![b'a'; 8 << 20]);
    let many: Vec<String> = (0..1100).map(|number| format!("f{number}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    let mut lying = zip(&[("a", b"x")]);
    // The end of the archive says that it has 65535 entries.
    let end = lying.len() - 22;
    lying[end + 8..end + 12].fill(0xff);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("traversal in tar", file(b"../out")),
        ("traversal inside", file(b"a/../../out")),
        ("absolute in tar", file(b"/etc/out")),
        ("backslashes", file(b"a\\..\\out")),
        ("control characters", file(b"a\nb")),
        ("not text", file(b"\xff\xfe")),
        ("a partial name", file(b".greenroom-partial-x")),
        ("a file beneath a file", file(b"fine/beneath")),
        ("twice in tar", file(b"fine")),
        ("twice in another spelling", file(b"./fine")),
        ("traversal in zip", zip(&[("fine", b"x"), ("../out", b"x")])),
        ("absolute in zip", zip(&[("fine", b"x"), ("/out", b"x")])),
        ("a bomb", bomb),
        ("a bomb in a tar.gz", gzip(&tar(&[(T::Regular, b"bomb", "", &vec![0; 120 << 20])]))),
        ("a long name", long_name.into_inner().unwrap()),
        ("more files than the project may have", zip(&many)),
        ("a lying index", lying),
        ("cut off", gzip(&vec![7; 100_000])[..60].to_vec()),
        ("a cut tar", file(b"other")[..900].to_vec()),
        ("no archive", b"hello".to_vec()),
        ("empty", Vec::new()),
    ];
    for (about, archive) in cases {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), place.path().join("link")).unwrap();
        let result = unpack(place.path(), &archive, "");
        assert!(result.is_err(), "{about}: {result:?}");
        assert_eq!(names(place.path()), ["link"], "{about}");
        assert!(names(outside.path()).is_empty(), "{about}");
        // Into a link, or through one.
        assert!(unpack(place.path(), &zip(&[("x", b"x")]), "link").is_err());
        assert!(unpack(place.path(), &zip(&[("link/x", b"x")]), "").is_err());
        assert!(names(outside.path()).is_empty() && names(place.path()) == ["link"], "{about}");
    }
}

#[test]
fn a_folder_in_the_way_stops_an_archive_before_anything_is_placed() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("b")).unwrap();
    let refused = unpack(place.path(), &zip(&[("a", b"x"), ("b", b"x")]), "").unwrap_err();
    assert!(matches!(refused, ProjectFilesError::Exists(_)), "{refused}");
    assert_eq!(names(place.path()), ["b"]);
}
