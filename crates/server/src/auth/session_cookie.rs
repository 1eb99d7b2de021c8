//! The cookie of a browser session. It holds its own secret, so that the browser never stores the token. Scripts cannot
//! read it and other sites cannot send it.

use super::{client_scheme::ClientScheme, token::TokenSecret};
use axum::http::{HeaderMap, HeaderValue, header};

/// The name over plain http.
pub const COOKIE: &str = "greenroom_session";
/// The name over https. Browsers accept it only with `Secure` and from this very host: no other host of the domain and no
/// plain http page can set it.
pub const HOST_COOKIE: &str = "__Host-greenroom_session";

/// The session cookie of the request. Two of one name, by mistake or by an attack, count as none. The plain name counts only
/// without the other, and not where the request is known to come by https: another site may have set it there.
pub fn cookie_value(headers: &HeaderMap, scheme: ClientScheme) -> Option<&[u8]> {
    match (named(headers, HOST_COOKIE), scheme.is_https()) {
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
pub fn set(cookie: &TokenSecret, scheme: ClientScheme) -> Option<HeaderValue> {
    let seconds = store::BROWSER_SESSION_LIFETIME.as_secs();
    cookie_header(&format!("{}; Max-Age={seconds}", cookie.reveal()), scheme)
}

/// The headers that remove the cookie, under both names: a browser may have kept one from before the server had https.
pub fn clear(scheme: ClientScheme) -> Option<Vec<HeaderValue>> {
    let names: &[ClientScheme] = match scheme {
        ClientScheme::Https => &[ClientScheme::Https, ClientScheme::Http],
        ClientScheme::Http => &[ClientScheme::Http],
    };
    names.iter().map(|scheme| cookie_header("; Max-Age=0", *scheme)).collect()
}

fn cookie_header(value: &str, scheme: ClientScheme) -> Option<HeaderValue> {
    let (name, secure) = match scheme {
        ClientScheme::Https => (HOST_COOKIE, "; Secure"),
        ClientScheme::Http => (COOKIE, ""),
    };
    let mut value = HeaderValue::try_from(format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{ClientScheme, clear, cookie_value};
    use axum::http::{HeaderMap, HeaderValue, header::COOKIE};

    #[test]
    fn only_a_single_session_cookie_is_read() {
        let read = |values: &[&str]| {
            let pairs = values.iter().map(|value| (COOKIE, HeaderValue::from_str(value).unwrap()));
            let headers: HeaderMap = pairs.fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            });
            cookie_value(&headers, ClientScheme::Http).map(|value| String::from_utf8(value.to_vec()).unwrap())
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
        let read = |cookies: &'static str, scheme| {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookies))]);
            cookie_value(&headers, scheme).map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        let both = "greenroom_session=planted; __Host-greenroom_session=mine";
        for scheme in [ClientScheme::Http, ClientScheme::Https] {
            assert_eq!(read(both, scheme).as_deref(), Some("mine"), "{scheme:?}");
        }
        assert_eq!(read("greenroom_session=planted", ClientScheme::Https), None);
        assert_eq!(read("greenroom_session=x", ClientScheme::Http).as_deref(), Some("x"));
        let two = "__Host-greenroom_session=a; __Host-greenroom_session=b; greenroom_session=c";
        assert_eq!(read(two, ClientScheme::Http), None);
    }

    #[test]
    fn the_cookie_is_same_site_and_secure_over_https() {
        let first = |scheme| clear(scheme).unwrap()[0].to_str().unwrap().to_owned();
        let plain = first(ClientScheme::Http);
        assert!(plain.contains("HttpOnly") && plain.contains("SameSite=Strict") && plain.contains("Path=/"), "{plain}");
        assert!(!plain.contains("Secure"));
        assert!(plain.starts_with("greenroom_session="), "{plain}");
        let secure = first(ClientScheme::Https);
        assert!(secure.ends_with("; Secure") && secure.starts_with("__Host-greenroom_session="), "{secure}");
    }
}
