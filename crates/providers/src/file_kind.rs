//! Tells what a file is by its content: names and declared types are only claims. Pure.

/// What a model can be shown, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    Image {
        format: ImageFormat,
        /// In pixels; `None` if the header does not say.
        size: Option<(u32, u32)>,
    },
    Pdf,
    /// UTF-8 without control characters.
    Text,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageFormat {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageFormat {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// A PDF may begin with other bytes.
const PDF_HEADER_WITHIN: usize = 1024;

impl FileKind {
    pub fn of(bytes: &[u8]) -> Self {
        let image = |format, size| Self::Image { format, size };
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            return image(ImageFormat::Png, big_endian(bytes, 16).zip(big_endian(bytes, 20)));
        }
        if bytes.starts_with(b"\xff\xd8\xff") {
            return image(ImageFormat::Jpeg, jpeg_size(bytes));
        }
        if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            return image(ImageFormat::Gif, little_endian(bytes, 6, 2).zip(little_endian(bytes, 8, 2)));
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return image(ImageFormat::Webp, webp_size(bytes));
        }
        let start = &bytes[..bytes.len().min(PDF_HEADER_WITHIN)];
        if start.windows(5).any(|window| window == b"%PDF-") {
            return Self::Pdf;
        }
        let is_plain = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{c}');
        match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(is_plain) => Self::Text,
            _ => Self::Other,
        }
    }
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number of up to four bytes.
fn little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    Some(bytes.get(at..at + length)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Walks over the segments to the one with the size of the frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xff))?;
        let number = |at: usize| Some(u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?));
        match marker {
            // Padding.
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => return number(at + 7).zip(number(at + 5)),
            // The image data begins, or the image ends.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::try_from(number(at + 2)?.max(2)).ok()?,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little_endian(bytes, 24, 3)? + 1, little_endian(bytes, 27, 3)? + 1)),
        b"VP8 " => Some((little_endian(bytes, 26, 2)? & 0x3fff, little_endian(bytes, 28, 2)? & 0x3fff)),
        b"VP8L" => {
            let bits = little_endian(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{FileKind, ImageFormat};

    #[test]
    fn content_decides_not_the_name() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 1, 0, 0, 0, 0, 200]].concat();
        let jpeg = [b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08".as_slice(), &[0, 10, 0, 20, 3]].concat();
        let gif = [b"GIF89a".as_slice(), &[7, 0, 9, 0]].concat();
        let webp = [b"RIFF....WEBPVP8X....\0\0\0\0".as_slice(), &[4, 0, 0, 5, 0, 0]].concat();
        let image = |format, size| FileKind::Image { format, size };
        for (bytes, kind) in [
            (png.as_slice(), image(ImageFormat::Png, Some((256, 200)))),
            (&png[..20], image(ImageFormat::Png, None)),
            (jpeg.as_slice(), image(ImageFormat::Jpeg, Some((20, 10)))),
            (b"\xff\xd8\xff", image(ImageFormat::Jpeg, None)),
            (gif.as_slice(), image(ImageFormat::Gif, Some((7, 9)))),
            (webp.as_slice(), image(ImageFormat::Webp, Some((5, 6)))),
            (b"%PDF-1.7 \xff", FileKind::Pdf),
            (b"\n\n%PDF-1.7 ", FileKind::Pdf),
            ("Grüße\r\n\t".as_bytes(), FileKind::Text),
            (b"", FileKind::Text),
            (b"<svg/>", FileKind::Text),
            (b"a\0b", FileKind::Other),
            (b"\xff\xfe", FileKind::Other),
            (b"PK\x03\x04", FileKind::Other),
        ] {
            assert_eq!(FileKind::of(bytes), kind, "{bytes:?}");
        }
    }

    #[test]
    fn broken_headers_do_no_harm() {
        for start in [b"\x89PNG\r\n\x1a\n".as_slice(), b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 "] {
            for length in 0..40 {
                for byte in [0, 0xff] {
                    FileKind::of(&[start, &vec![byte; length]].concat());
                }
            }
        }
    }
}
