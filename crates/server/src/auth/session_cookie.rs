//! The cookie of a browser session. It holds its own secret, so that the browser never stores the token. Scripts cannot
//! read it and other sites cannot send it.

use super::token::TokenSecret;
use axum::http::{HeaderMap, HeaderValue, header};

/// The name over plain http.
pub const COOKIE: &str = "greenroom_session";
/// The name over https. Browsers accept it only with `Secure` and from this very host: no other host of the domain and no
/// plain http page can set it.
pub const HOST_COOKIE: &str = "__Host-greenroom_session";

/// The session cookie of the request. Two of one name, by mistake or by an attack, count as none. The plain name counts only
/// without the other, and not where the request is known to come by https: another site may have set it there.
pub fn cookie_value(headers: &HeaderMap) -> Option<&[u8]> {
    match (named(headers, HOST_COOKIE), is_https(headers)) {
        ([Some(value), None], _) => Some(value),
        ([None, _], false) => match named(headers, COOKIE) {
            [Some(value), None] => Some(value),
            _ => None,
        },
        _ => None,
    }
    .filter(|value| !value.is_empty())
}

/// The first two cookies of this name.
fn named<'a>(headers: &'a HeaderMap, name: &str) -> [Option<&'a [u8]>; 2] {
    let pairs = headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut ours = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    [ours.next(), ours.next()]
}

/// The header that sets the cookie.
pub fn set(cookie: &TokenSecret, headers: &HeaderMap) -> Option<HeaderValue> {
    let seconds = store::BROWSER_SESSION_LIFETIME.as_secs();
    cookie_header(&format!("{}; Max-Age={seconds}", cookie.reveal()), is_https(headers))
}

/// The headers that remove the cookie, under both names: a browser may have kept one from before the server had https.
pub fn clear(headers: &HeaderMap) -> Option<Vec<HeaderValue>> {
    let names: &[bool] = if is_https(headers) { &[true, false] } else { &[false] };
    names.iter().map(|is_https| cookie_header("; Max-Age=0", *is_https)).collect()
}

/// Whether the browser uses https, as the Origin or a proxy's header says.
pub fn is_https(headers: &HeaderMap) -> bool {
    let begins = |name: &str, https: &[u8]| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.as_bytes().to_ascii_lowercase().starts_with(https))
    };
    begins("origin", b"https://") || begins("x-forwarded-proto", b"https")
}

fn cookie_header(value: &str, is_https: bool) -> Option<HeaderValue> {
    let (name, secure) = if is_https { (HOST_COOKIE, "; Secure") } else { (COOKIE, "") };
    let mut value = HeaderValue::try_from(format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")).ok()?;
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
    fn l4_over_https_only_the_host_cookie_counts() {
        let read = |cookies: &'static str, proto: Option<&'static str>| {
            let mut headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookies))]);
            if let Some(proto) = proto {
                headers.insert("x-forwarded-proto", HeaderValue::from_static(proto));
            }
            cookie_value(&headers).map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        let both = "greenroom_session=planted; __Host-greenroom_session=mine";
        for proto in [None, Some("http"), Some("https")] {
            assert_eq!(read(both, proto).as_deref(), Some("mine"), "{proto:?}");
        }
        assert_eq!(read("greenroom_session=planted", Some("https")), None);
        assert_eq!(read("greenroom_session=x", Some("http")).as_deref(), Some("x"));
        let two = "__Host-greenroom_session=a; __Host-greenroom_session=b; greenroom_session=c";
        assert_eq!(read(two, None), None);
    }

    #[test]
    fn the_cookie_is_same_site_and_secure_over_https() {
        let with = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            clear(&headers).unwrap()[0].to_str().unwrap().to_owned()
        };
        let plain = with("origin", "http://127.0.0.1:7878");
        assert!(plain.contains("HttpOnly") && plain.contains("SameSite=Strict") && plain.contains("Path=/"), "{plain}");
        assert!(!plain.contains("Secure"));
        assert!(plain.starts_with("greenroom_session="), "{plain}");
        for (name, value) in [("origin", "https://green.example.org"), ("x-forwarded-proto", "HTTPS")] {
            let secure = with(name, value);
            assert!(secure.ends_with("; Secure") && secure.starts_with("__Host-greenroom_session="), "{secure}");
        }
    }
}
