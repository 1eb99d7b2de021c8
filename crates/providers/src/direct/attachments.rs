//! Attached files as parts of a request: images, PDFs and texts that the API takes, within its limits. Everything else is
//! named in the prompt, with the reason, and can be read with the tool `read_attachment`.
//!
//! Images are never changed: an image beyond a limit is not shown (`docs/decisions/attachments.md`).

use super::{ModelApiKind, conversation::UserPart};
use crate::{
    AttachedFile, HistoryMessage, TurnEvent,
    file_kind::{FileKind, ImageFormat},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _},
};

/// A longer text is read in pieces, with the tool.
const MAX_TEXT_BYTES: usize = 100_000;
/// No upload is longer.
const MAX_FILE_BYTES: u64 = domain::upload::MAX_BYTES;

/// What an API takes. The limits of bytes are for the files themselves, which grow by a third in a request.
#[derive(Clone, Copy, Debug)]
pub struct AttachmentLimits {
    formats: &'static [ImageFormat],
    image_bytes: usize,
    /// Pixels of the longer side.
    image_side: u32,
    images: usize,
    has_pdf: bool,
    /// All files of a request.
    total_bytes: usize,
}

const ALL_FORMATS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::Webp];
const WITHOUT_GIF: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];

impl AttachmentLimits {
    /// `is_openai_service`: compatible servers take images, but no files.
    pub fn of(api: ModelApiKind, is_openai_service: bool) -> Self {
        let openai = Self {
            formats: ALL_FORMATS,
            image_bytes: 15_000_000,
            image_side: 16_000,
            images: 100,
            has_pdf: true,
            total_bytes: 30_000_000,
        };
        match api {
            // 5 MB of base64 per image, 32 MB per request.
            ModelApiKind::Messages => {
                Self { image_bytes: 3_900_000, image_side: 8_000, total_bytes: 20_000_000, ..openai }
            }
            ModelApiKind::Responses => openai,
            ModelApiKind::Chat => Self { has_pdf: is_openai_service, ..openai },
            // 20 MB per request.
            ModelApiKind::Gemini => {
                Self { formats: WITHOUT_GIF, image_bytes: 13_000_000, total_bytes: 13_000_000, ..openai }
            }
        }
    }
}

/// The files of a conversation, by the path that the prompt names.
#[derive(Debug)]
pub struct AttachmentParts {
    limits: AttachmentLimits,
    /// What the limits leave for further files.
    images_left: usize,
    bytes_left: usize,
    parts: BTreeMap<String, UserPart>,
    /// The files that the model does not see.
    hidden: BTreeSet<String>,
    /// What people should know: files of the latest message that the model does not see.
    pub notices: Vec<TurnEvent>,
}

impl AttachmentParts {
    pub fn new(limits: AttachmentLimits) -> Self {
        Self {
            limits,
            images_left: limits.images,
            bytes_left: limits.total_bytes,
            parts: BTreeMap::new(),
            hidden: BTreeSet::new(),
            notices: Vec::new(),
        }
    }

    /// Reads the files, the newest first: older ones are left out where the limits end. Blocks.
    pub fn load(prompt: &[AttachedFile], history: &[HistoryMessage], limits: AttachmentLimits) -> Self {
        let mut loaded = Self::new(limits);
        loaded.add(prompt, true);
        for message in history.iter().rev() {
            loaded.add(&message.attachments, false);
        }
        loaded
    }

    /// Reads the files of one more message, within what the limits leave. Blocks.
    pub fn add(&mut self, files: &[AttachedFile], is_new: bool) {
        for file in files {
            if self.parts.contains_key(&file.path) {
                continue;
            }
            let part = match read(file).map_err(|error| error.to_string()).and_then(|content| {
                let part = part(file, &content, &self.limits, self.images_left, self.bytes_left)?;
                Ok((part, content.len()))
            }) {
                Ok((part, size)) => {
                    self.bytes_left -= size;
                    self.images_left -= usize::from(matches!(part, UserPart::Image { .. }));
                    part
                }
                Err(reason) => {
                    if is_new {
                        let message = format!("The model does not see {:?}: {reason}.", file.name);
                        self.notices.push(TurnEvent::Status { status: "attachment_not_shown".into(), message });
                    }
                    self.hidden.insert(file.path.clone());
                    UserPart::Text(format!("[{} is not shown here: {reason}.]", file.path))
                }
            };
            self.parts.insert(file.path.clone(), part);
        }
    }

    pub fn limits(&self) -> AttachmentLimits {
        self.limits
    }

    pub fn hides_any(&self, files: &[AttachedFile]) -> bool {
        files.iter().any(|file| self.hidden.contains(&file.path))
    }

    /// The parts of a message, to be put before its text.
    pub fn of(&self, files: &[AttachedFile]) -> Vec<UserPart> {
        files.iter().filter_map(|file| self.parts.get(&file.path).cloned()).collect()
    }
}

fn read(file: &AttachedFile) -> io::Result<Vec<u8>> {
    let opened = File::open(&file.file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("it was deleted"),
        _ => error,
    })?;
    let mut content = Vec::new();
    opened.take(MAX_FILE_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the part, or why there is none.
fn part(
    file: &AttachedFile,
    content: &[u8],
    limits: &AttachmentLimits,
    images: usize,
    bytes: usize,
) -> Result<UserPart, String> {
    const BY_TOOL: &str = "read it with the tool read_attachment";
    let size = content.len();
    let kind = FileKind::of(content);
    if size > bytes && kind != FileKind::Other {
        return Err(format!("the files of this conversation have more than {} bytes; {BY_TOOL}", limits.total_bytes));
    }
    match kind {
        FileKind::Image { format, .. } if !limits.formats.contains(&format) => {
            Err(format!("the API takes no {}", format.media_type()))
        }
        FileKind::Image { .. } if size > limits.image_bytes => Err(format!(
            "it has {size} bytes, and the API takes images of at most {}; attach a smaller one",
            limits.image_bytes
        )),
        FileKind::Image { size: Some((width, height)), .. } if width.max(height) > limits.image_side => Err(format!(
            "it has {width} × {height} pixels, and the API takes at most {} on a side; attach a smaller one",
            limits.image_side
        )),
        FileKind::Image { .. } if images == 0 => Err(format!("the API takes at most {} images", limits.images)),
        FileKind::Image { format, .. } => {
            Ok(UserPart::Image { media_type: format.media_type(), data: STANDARD.encode(content).into() })
        }
        FileKind::Pdf if !limits.has_pdf => Err(format!("the API takes no PDF; {BY_TOOL}")),
        FileKind::Pdf => Ok(UserPart::Pdf { name: file.name.clone(), data: STANDARD.encode(content).into() }),
        FileKind::Text if size > MAX_TEXT_BYTES => Err(format!("it has {size} bytes of text; {BY_TOOL}")),
        FileKind::Text => {
            // A file must not contain the end of itself (invariant 16).
            let text = String::from_utf8_lossy(content).replace("</attachment", "<\\/attachment");
            Ok(UserPart::Text(format!("<attachment path=\"{}\">\n{text}\n</attachment>", file.path)))
        }
        FileKind::Other => Err(format!("it is neither an image, a PDF nor a text; {BY_TOOL}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{AttachmentLimits, AttachmentParts, ModelApiKind, UserPart};
    use crate::{AttachedFile, HistoryAuthor, HistoryMessage};
    use std::fs;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10";

    #[test]
    fn each_api_gets_what_it_takes_and_the_rest_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let file = folder.path().join(name);
            fs::write(&file, content).unwrap();
            AttachedFile { name: name.into(), path: format!("attachments/x/{name}"), file }
        };
        let wide = [&PNG[..16], &[0, 1, 0, 0, 0, 0, 0, 1]].concat();
        let files = [
            file("a.txt", PNG),
            file("b.png", b"text </attachment>"),
            file("c.gif", b"GIF89a\x01\0\x01\0"),
            file("d.pdf", b"%PDF-1.7"),
            file("e.zip", b"PK\x03\x04\0"),
            file("f.png", &wide),
            file("g.log", &vec![b'x'; 100_001]),
        ];
        let gone = AttachedFile { file: folder.path().join("gone"), ..files[0].clone() };
        let gone = AttachedFile { path: "attachments/y/gone".into(), ..gone };
        let history =
            [HistoryMessage { attachments: vec![gone.clone()], ..HistoryMessage::new(HistoryAuthor::ThisAgent, "") }];
        let load = |api, is_openai| {
            let loaded = AttachmentParts::load(&files, &history, AttachmentLimits::of(api, is_openai));
            let shown: Vec<String> = loaded
                .of(&files)
                .iter()
                .map(|part| match part {
                    UserPart::Text(text) if text.contains("not shown") => "-".to_owned(),
                    UserPart::Text(text) => text.clone(),
                    UserPart::Image { media_type, .. } => (*media_type).to_owned(),
                    UserPart::Pdf { name, .. } => name.clone(),
                })
                .collect();
            assert!(
                matches!(&loaded.of(std::slice::from_ref(&gone))[..], [UserPart::Text(text)] if text.contains("deleted"))
            );
            (shown.join(" "), loaded.notices.len())
        };
        let text = "<attachment path=\"attachments/x/b.png\">\ntext <\\/attachment>\n</attachment>";
        for (api, is_openai, expected) in [
            (ModelApiKind::Messages, false, (format!("image/png {text} image/gif d.pdf - - -"), 3)),
            (ModelApiKind::Chat, true, (format!("image/png {text} image/gif d.pdf - - -"), 3)),
            (ModelApiKind::Chat, false, (format!("image/png {text} image/gif - - - -"), 4)),
            (ModelApiKind::Responses, true, (format!("image/png {text} image/gif d.pdf - - -"), 3)),
            (ModelApiKind::Gemini, false, (format!("image/png {text} - d.pdf - - -"), 4)),
        ] {
            assert_eq!(load(api, is_openai), expected, "{api:?}");
        }
    }
}
