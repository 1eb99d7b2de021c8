//! An uploaded file, and its path in an agent's workspace. Names come from the uploader: here they become safe file
//! names that cannot lead out of the folder (invariants 16 and 18: content is data, files stay beneath their root).

use crate::{ids::UploadId, message::Attachment, name::Name, time::Timestamp};

/// Limit for one file.
pub const MAX_BYTES: u64 = 25 * 1000 * 1000;
/// Limit for all files of one owner.
pub const MAX_OWNER_BYTES: u64 = 5 * 1000 * 1000 * 1000;
/// Limit for the files of one request: as many as a message may attach.
pub const MAX_FILES: usize = 32;
pub const MAX_MEDIA_TYPE_BYTES: usize = 120;

/// The folder of attachments in an agent workspace.
pub const FOLDER: &str = "attachments";

const URL_PREFIX: &str = "/api/uploads/";
/// File systems allow 255; this leaves room for a prefix while the file is written.
const MAX_FILE_NAME_BYTES: usize = 180;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upload {
    pub id: UploadId,
    pub name: Name,
    pub media_type: String,
    pub bytes: u64,
    pub created_at: Timestamp,
}

impl Upload {
    pub fn url(&self) -> String {
        format!("{URL_PREFIX}{}", self.id)
    }

    /// The attachment of a message for this upload.
    pub fn attachment(&self) -> Attachment {
        Attachment { name: self.name.clone(), media_type: self.media_type.clone(), url: self.url() }
    }
}

impl Attachment {
    /// The id of the upload that the URL refers to, if it refers to one.
    pub fn upload_id(&self) -> Option<UploadId> {
        self.url.strip_prefix(URL_PREFIX)?.parse().ok()
    }

    /// Folder and file name beneath [`FOLDER`]. Each upload has its own folder: files of the same name do not collide,
    /// and every agent of the room finds an upload at the same path.
    pub fn location(&self) -> Option<(String, String)> {
        let id = self.upload_id()?.0.simple().to_string();
        // The end of a UUIDv7 is random.
        let folder = id.get(id.len() - 12..)?.to_owned();
        Some((folder, file_name(self.name.as_str())))
    }

    /// The path that prompts refer to.
    pub fn path(&self) -> Option<String> {
        self.location().map(|(folder, file)| format!("{FOLDER}/{folder}/{file}"))
    }
}

/// Returns one plain path component: no separator, not hidden, and no leading character that shells or other file
/// systems treat specially.
fn file_name(name: &str) -> String {
    let replace_unsafe = |c: char| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c };
    let mut file: String = name.chars().map(replace_unsafe).collect();
    file = file.trim_start_matches(['.', '-', '~', ' ']).trim_end_matches(['.', ' ']).to_owned();
    if file.len() > MAX_FILE_NAME_BYTES {
        // Keep the extension.
        let ending = file.rfind('.').filter(|at| file.len() - at <= 16).map_or("", |at| &file[at..]).to_owned();
        let cut = file.floor_char_boundary(MAX_FILE_NAME_BYTES - ending.len());
        file.truncate(cut);
        file.push_str(&ending);
    }
    if file.is_empty() { "file".to_owned() } else { file }
}

/// Returns `type/subtype` in lower case without parameters; anything else becomes `application/octet-stream`.
pub fn media_type(sent: Option<&str>) -> String {
    let essence = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    let is_valid = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    if is_valid && essence.len() <= MAX_MEDIA_TYPE_BYTES { essence } else { "application/octet-stream".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Upload, file_name, media_type};
    use crate::{ids::UploadId, message::Attachment, name::Name, time::Timestamp};
    use std::path::{Component, Path};

    #[test]
    fn invariant_18_any_name_becomes_one_plain_path_component() {
        for name in [
            "..",
            ".",
            "../../etc/passwd",
            "/etc/passwd",
            "a/../b",
            ".ssh",
            "-rf",
            "~",
            "\\\\share\\x",
            "C:\\x",
            "...",
            " ",
        ] {
            let file = file_name(name);
            let parts: Vec<_> = Path::new(&file).components().collect();
            assert!(matches!(parts[..], [Component::Normal(part)] if part == file.as_str()), "{name:?} → {file:?}");
            assert!(!file.starts_with(['.', '-', '~']), "{name:?} → {file:?}");
        }
        assert_eq!(file_name("Bericht März.pdf"), "Bericht März.pdf");
        let long = file_name(&format!("{}.tar.gz", "ü".repeat(119)));
        assert!(long.len() <= 180 && long.ends_with(".gz"), "{long}");
    }

    #[test]
    fn only_upload_urls_have_an_upload_id() {
        let id = UploadId::generate();
        let name = Name::parse("a.txt").unwrap();
        let upload =
            Upload { id, name, media_type: "text/plain".into(), bytes: 1, created_at: Timestamp::from_millis(0) };
        let attachment = upload.attachment();
        assert_eq!(attachment.upload_id(), Some(id));
        assert!(
            attachment.path().unwrap().starts_with("attachments/") && attachment.path().unwrap().ends_with("/a.txt")
        );
        for url in ["", "/api/uploads/", "/api/uploads/../x", "https://x/api/uploads/1", "data:,x"] {
            assert_eq!(Attachment { url: url.into(), ..attachment.clone() }.upload_id(), None, "{url}");
        }
    }

    #[test]
    fn an_unusual_media_type_becomes_octet_stream() {
        assert_eq!(media_type(Some("Text/Plain; charset=utf-8")), "text/plain");
        for odd in [None, Some(""), Some("text"), Some("a/b\r\nSet-Cookie: x"), Some("text/"), Some("x/ü")] {
            assert_eq!(media_type(odd), "application/octet-stream", "{odd:?}");
        }
        assert_eq!(media_type(Some(&format!("a/{}", "b".repeat(200)))), "application/octet-stream");
    }
}
