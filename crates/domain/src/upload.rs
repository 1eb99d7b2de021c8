//! A file that somebody uploaded, and where it lies in an agent's workplace. Names are the uploader's: here they become
//! something that can name a file and lead nowhere else (invariants 16 and 18).

use crate::{ids::UploadId, message::Attachment, name::Name, time::Timestamp};

/// Of one file.
pub const MAX_BYTES: u64 = 25 * 1000 * 1000;
/// Of all files of one owner.
pub const MAX_OWNER_BYTES: u64 = 5 * 1000 * 1000 * 1000;
pub const MAX_MEDIA_TYPE_BYTES: usize = 120;

/// Where attachments lie in a workplace.
pub const FOLDER: &str = "attachments";

const URL: &str = "/api/uploads/";
/// File systems take 255; this leaves room for what is put before it while it is written.
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
        format!("{URL}{}", self.id)
    }

    /// As a message names it.
    pub fn attachment(&self) -> Attachment {
        Attachment { name: self.name.clone(), media_type: self.media_type.clone(), url: self.url() }
    }
}

impl Attachment {
    /// The upload that its address names, if it names one.
    pub fn upload(&self) -> Option<UploadId> {
        self.url.strip_prefix(URL)?.parse().ok()
    }

    /// Folder and file name beneath [`FOLDER`]. A folder for each upload: two files of one name do not meet, and the same
    /// upload is found at the same place by every agent of the room.
    pub fn place(&self) -> Option<(String, String)> {
        let id = self.upload()?.0.simple().to_string();
        // The end of such an id is its random part.
        let folder = id.get(id.len() - 12..)?.to_owned();
        Some((folder, file_name(self.name.as_str())))
    }

    /// For a prompt.
    pub fn path(&self) -> Option<String> {
        self.place().map(|(folder, file)| format!("{FOLDER}/{folder}/{file}"))
    }
}

/// One plain component: no separator, nothing hidden, nothing that a shell or another file system reads specially at the
/// beginning.
fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c };
    let mut file: String = name.chars().map(safe).collect();
    file = file.trim_start_matches(['.', '-', '~', ' ']).trim_end_matches(['.', ' ']).to_owned();
    if file.len() > MAX_FILE_NAME_BYTES {
        // The ending says what it is: it stays.
        let ending = file.rfind('.').filter(|at| file.len() - at <= 16).map_or("", |at| &file[at..]).to_owned();
        let cut = file.floor_char_boundary(MAX_FILE_NAME_BYTES - ending.len());
        file.truncate(cut);
        file.push_str(&ending);
    }
    if file.is_empty() { "file".to_owned() } else { file }
}

/// `type/subtype` in lower case without parameters; anything else is bytes and nothing more.
pub fn media_type(sent: Option<&str>) -> String {
    let essence = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let token =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    let plain = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    if plain && essence.len() <= MAX_MEDIA_TYPE_BYTES { essence } else { "application/octet-stream".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Upload, file_name, media_type};
    use crate::{ids::UploadId, message::Attachment, name::Name, time::Timestamp};
    use std::path::{Component, Path};

    #[test]
    fn invariant_18_a_name_is_one_plain_component_whatever_it_was() {
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
    fn only_an_address_of_an_upload_is_one() {
        let id = UploadId::generate();
        let name = Name::parse("a.txt").unwrap();
        let upload =
            Upload { id, name, media_type: "text/plain".into(), bytes: 1, created_at: Timestamp::from_millis(0) };
        let attachment = upload.attachment();
        assert_eq!(attachment.upload(), Some(id));
        assert!(
            attachment.path().unwrap().starts_with("attachments/") && attachment.path().unwrap().ends_with("/a.txt")
        );
        for url in ["", "/api/uploads/", "/api/uploads/../x", "https://x/api/uploads/1", "data:,x"] {
            assert_eq!(Attachment { url: url.into(), ..attachment.clone() }.upload(), None, "{url}");
        }
    }

    #[test]
    fn a_media_type_is_plain_or_bytes() {
        assert_eq!(media_type(Some("Text/Plain; charset=utf-8")), "text/plain");
        for odd in [None, Some(""), Some("text"), Some("a/b\r\nSet-Cookie: x"), Some("text/"), Some("x/ü")] {
            assert_eq!(media_type(odd), "application/octet-stream", "{odd:?}");
        }
        assert_eq!(media_type(Some(&format!("a/{}", "b".repeat(200)))), "application/octet-stream");
    }
}
