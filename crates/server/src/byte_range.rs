//! `Range` of a file (RFC 9110, 14): one range of bytes, and the response with it.

use crate::error::{Code, Problem};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use std::io::SeekFrom;
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};
use tokio_util::io::ReaderStream;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WantedBytes {
    All,
    /// From the first to the last byte, both included.
    Range {
        first: u64,
        last: u64,
    },
    /// The range begins beyond the end.
    Beyond,
}

/// What the header of a request wants of a file with so many bytes. Several ranges, another unit or a malformed header
/// mean the whole file, as the standard allows.
pub fn wanted(headers: &HeaderMap, length: u64) -> WantedBytes {
    let range = headers.get(header::RANGE).filter(|_| !headers.contains_key(header::IF_RANGE));
    let Some(range) = range.and_then(|range| range.to_str().ok()?.trim().strip_prefix("bytes=")) else {
        return WantedBytes::All;
    };
    parse(range, length).unwrap_or(WantedBytes::All)
}

/// `0-99`, `100-` or `-50`; `None` if the text is no range.
pub fn parse(range: &str, length: u64) -> Option<WantedBytes> {
    let (first, last) = range.split_once('-')?;
    Some(match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), _) if first >= length => WantedBytes::Beyond,
        (Ok(first), Ok(last)) if last >= first => WantedBytes::Range { first, last: last.min(length - 1) },
        (Ok(first), Err(_)) if last.trim().is_empty() => WantedBytes::Range { first, last: length - 1 },
        (Err(_), Ok(0)) if first.trim().is_empty() => WantedBytes::Beyond,
        (Err(_), Ok(count)) if first.trim().is_empty() && length > 0 => {
            WantedBytes::Range { first: length.saturating_sub(count), last: length - 1 }
        }
        _ => return None,
    })
}

/// The file, or the wanted part of it. `headers` describe the whole file.
pub async fn respond(
    mut file: File,
    length: u64,
    wanted: WantedBytes,
    mut headers: HeaderMap,
) -> Result<Response, Problem> {
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    match wanted {
        WantedBytes::All => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            Ok((headers, Body::from_stream(ReaderStream::new(file.take(length)))).into_response())
        }
        WantedBytes::Range { first, last } => {
            file.seek(SeekFrom::Start(first)).await.map_err(Problem::unavailable)?;
            let part = last - first + 1;
            let range = HeaderValue::try_from(format!("bytes {first}-{last}/{length}"));
            headers.insert(header::CONTENT_RANGE, range.map_err(Problem::internal)?);
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part));
            let body = Body::from_stream(ReaderStream::new(file.take(part)));
            Ok((StatusCode::PARTIAL_CONTENT, headers, body).into_response())
        }
        WantedBytes::Beyond => {
            let range = HeaderValue::try_from(format!("bytes */{length}")).map_err(Problem::internal)?;
            let detail = format!("The file has {length} bytes; ask for bytes before its end.");
            Err(Problem::new(Code::RangeNotSatisfiable, detail).header(header::CONTENT_RANGE, range))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WantedBytes, wanted};
    use axum::http::{HeaderMap, HeaderValue, header};

    #[test]
    fn one_range_is_understood_and_everything_else_is_the_whole_file() {
        let of =
            |range: &'static str| wanted(&HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(range))]), 10);
        for (range, first, last) in
            [("bytes=0-3", 0, 3), ("bytes=4-", 4, 9), ("bytes=-2", 8, 9), ("bytes=-99", 0, 9), ("bytes=5-99", 5, 9)]
        {
            assert_eq!(of(range), WantedBytes::Range { first, last }, "{range}");
        }
        for range in ["bytes=10-", "bytes=99-100", "bytes=-0"] {
            assert_eq!(of(range), WantedBytes::Beyond, "{range}");
        }
        for range in ["bytes=3-1", "bytes=0-1,4-5", "lines=0-1", "bytes=", "bytes=a-b", "bytes=-"] {
            assert_eq!(of(range), WantedBytes::All, "{range}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 10), WantedBytes::All);
    }
}
