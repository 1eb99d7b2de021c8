//! What a response in memory gets before it leaves: an ETag, and gzip for a client that accepts it. Streams and files pass
//! unchanged: only JSON that is complete in memory, in answer to a GET, is touched. A POST may answer with a secret, which
//! must not share a compressed response with what somebody else wrote.

use crate::shares;
use axum::{
    body::{Body, HttpBody as _, to_bytes},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};
use std::io::Write as _;

/// Smaller responses fit into one packet anyway.
const MIN_BYTES: u64 = 1024;
/// A larger response is hashed and compressed on a thread where nobody waits for the next request.
const BLOCKING_BYTES: usize = 64 * 1024;

/// What a request says about the form of its response.
pub struct WantedForm {
    is_get: bool,
    gzip: bool,
    /// `If-None-Match`, joined.
    known: Option<String>,
}

impl WantedForm {
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        let is_get = matches!(*method, Method::GET | Method::HEAD);
        let known: Vec<&str> =
            headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tag| tag.to_str().ok()).collect();
        let known = Some(known.join(",")).filter(|known| !known.is_empty());
        Self { is_get, gzip: accepts_gzip(headers), known }
    }

    fn knows(&self, tag: &str) -> bool {
        let strip = |tag: &str| tag.trim().strip_prefix("W/").unwrap_or(tag.trim()).to_owned();
        self.known.iter().any(|known| known.trim() == "*" || known.split(',').any(|one| strip(one) == strip(tag)))
    }
}

/// Whether gzip is listed with a quality above zero (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    let mut any = None;
    for entry in lists.flat_map(|list| list.split(',')) {
        let (name, quality) = crate::accept::entry(entry);
        match name.as_str() {
            "gzip" | "x-gzip" => return quality > 0,
            "*" => any = Some(quality > 0),
            _ => {}
        }
    }
    any.unwrap_or(false)
}

/// Adds an ETag and compresses, where both are right.
pub async fn finish(wanted: WantedForm, mut response: Response) -> Response {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(is_json);
    let is_plain = !response.headers().contains_key(header::CONTENT_ENCODING)
        && !response.headers().contains_key(header::ETAG)
        && !response.headers().contains_key(header::SET_COOKIE);
    let Some(length) = response.body().size_hint().exact() else { return response };
    if !wanted.is_get || !is_json || !is_plain || response.status() != StatusCode::OK {
        return response;
    }
    // The length is exact because the body is one piece in memory, so this neither waits nor copies.
    let Ok(bytes) = to_bytes(std::mem::take(response.body_mut()), usize::MAX).await else { return response };
    let gzip = wanted.gzip && length >= MIN_BYTES;
    let work = move || {
        let tag = tag_of(&bytes);
        let compressed = gzip.then(|| compress(&bytes)).flatten();
        (tag, bytes, compressed)
    };
    let finished = match usize::try_from(length).is_ok_and(|length| length < BLOCKING_BYTES) {
        true => Ok(work()),
        false => tokio::task::spawn_blocking(work).await,
    };
    let (tag, bytes, compressed) = match finished {
        Ok(finished) => finished,
        Err(error) => return axum::response::IntoResponse::into_response(crate::error::Problem::internal(error)),
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let is_known = wanted.knows(&tag);
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    if is_known {
        headers.remove(header::CONTENT_TYPE);
        headers.remove(header::CONTENT_LENGTH);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let mut is_replaced = false;
    let body = match compressed {
        Some(compressed) => {
            is_replaced = true;
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            compressed
        }
        None => bytes,
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = Body::from(body);
    if is_replaced {
        shares::count_again(&mut response);
    }
    response
}

fn is_json(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"application/json")
}

/// Weak, because the compressed and the plain bytes have the same tag.
fn tag_of(bytes: &Bytes) -> String {
    use std::fmt::Write as _;
    let mut tag = "W/\"".to_owned();
    for byte in &Sha256::digest(bytes)[..16] {
        // Writing to a string cannot fail.
        write!(tag, "{byte:02x}").unwrap_or_default();
    }
    tag.push('"');
    tag
}

/// `None` if compression does not help.
fn compress(bytes: &Bytes) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).ok()?;
    let compressed = encoder.finish().ok()?;
    (compressed.len() < bytes.len()).then(|| compressed.into())
}

#[cfg(test)]
mod tests {
    use super::{WantedForm, accepts_gzip, tag_of};
    use axum::http::{HeaderMap, HeaderValue, Method, header};
    use bytes::Bytes;

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        let accepts =
            |list| accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(list))]));
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5") && accepts("*") && accepts("*;q=0, gzip"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("*, gzip;q=0.0") && !accepts("identity"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_known_tag_is_found_in_a_list_and_in_its_strong_form() {
        let tag = tag_of(&Bytes::from_static(b"{}"));
        let knows = |list: &str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_str(list).unwrap())]);
            WantedForm::of(&Method::GET, &headers).knows(&tag)
        };
        assert!(knows(&tag) && knows("*") && knows(&format!("\"a\", {tag}")) && knows(&tag[2..]));
        assert!(!knows("\"a\"") && !knows(&tag[..10]));
    }
}
