//! The cookie of a browser session. It holds its own secret, so that the browser never stores the token. Scripts cannot
//! read it and other sites cannot send it.

use super::token::TokenSecret;
use axum::http::{HeaderMap, HeaderValue, header};

pub const COOKIE: &str = "greenroom_session";

/// The session cookie of the request. Two cookies, by mistake or by an attack, count as none.
pub fn cookie_value(headers: &HeaderMap) -> Option<&[u8]> {
    let pairs = headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut ours = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(COOKIE.as_bytes())?.strip_prefix(b"="));
    match (ours.next(), ours.next()) {
        (Some(value), None) if !value.is_empty() => Some(value),
        _ => None,
    }
}

/// The header that sets the cookie. It is `Secure` if the browser uses https, as the Origin or a proxy's header says.
pub fn set(cookie: &TokenSecret, headers: &HeaderMap) -> Option<HeaderValue> {
    let seconds = store::BROWSER_SESSION_LIFETIME.as_secs();
    cookie_header(&format!("{COOKIE}={}; Max-Age={seconds}", cookie.reveal()), headers)
}

/// The header that removes the cookie.
pub fn clear(headers: &HeaderMap) -> Option<HeaderValue> {
    cookie_header(&format!("{COOKIE}=; Max-Age=0"), headers)
}

/// Whether the browser uses https, as the Origin or a proxy's header says.
pub fn is_https(headers: &HeaderMap) -> bool {
    let begins = |name: &str, https: &[u8]| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.as_bytes().to_ascii_lowercase().starts_with(https))
    };
    begins("origin", b"https://") || begins("x-forwarded-proto", b"https")
}

fn cookie_header(start: &str, headers: &HeaderMap) -> Option<HeaderValue> {
    let https = is_https(headers);
    let secure = if https { "; Secure" } else { "" };
    let mut value = HeaderValue::try_from(format!("{start}; Path=/; HttpOnly; SameSite=Strict{secure}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{clear, cookie_value};
    use axum::http::{HeaderMap, HeaderName, HeaderValue, header::COOKIE};

    #[test]
    fn only_a_single_session_cookie_is_read() {
        let read = |values: &[&str]| {
            let pairs = values.iter().map(|value| (COOKIE, HeaderValue::from_str(value).unwrap()));
            let headers: HeaderMap = pairs.fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            });
            cookie_value(&headers).map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        assert_eq!(read(&["a=b; greenroom_session=x ; c=d"]).as_deref(), Some("x"));
        assert_eq!(read(&["a=b", "greenroom_session=x"]).as_deref(), Some("x"));
        for none in [&[][..], &["greenroom_session="], &["greenroom_sessions=x"], &["xgreenroom_session=x"]] {
            assert_eq!(read(none), None, "{none:?}");
        }
        assert_eq!(read(&["greenroom_session=x; greenroom_session=y"]), None, "two cookies");
    }

    #[test]
    fn the_cookie_is_same_site_and_secure_over_https() {
        let with = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            clear(&headers).unwrap().to_str().unwrap().to_owned()
        };
        let plain = with("origin", "http://127.0.0.1:7878");
        assert!(plain.contains("HttpOnly") && plain.contains("SameSite=Strict") && plain.contains("Path=/"), "{plain}");
        assert!(!plain.contains("Secure"));
        assert!(with("origin", "https://green.example.org").ends_with("; Secure"));
        assert!(with("x-forwarded-proto", "HTTPS").ends_with("; Secure"));
    }
}
