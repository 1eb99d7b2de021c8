use crate::test_app::{LOCAL_KEY, TestApp, config, header};
use server::HttpServerConfig;

async fn status_of(host: Option<&str>, more: &[(&'static str, &str)], target: &str) -> Result<u16, String> {
    let test_app = TestApp::with(HttpServerConfig { public_hosts: vec!["green.example.org".into()], ..config() });
    let answer = test_app
        .send(target, |mut request| {
            request.headers_mut().clear();
            let request = header(request, "authorization", &format!("Bearer {LOCAL_KEY}"));
            let request = host.into_iter().fold(request, |request, host| header(request, "host", host));
            more.iter().fold(request, |request, (name, value)| header(request, name, value))
        })
        .await;
    if answer.status.is_success() { Ok(answer.status.as_u16()) } else { Err(answer.problem(answer.status.as_u16())) }
}

#[tokio::test]
async fn only_known_host_names_are_accepted() {
    for target in ["/", "/healthz", "/test/whoami", "/openapi.json", "/nothing"] {
        for host in
            [Some("evil.example"), Some("127.0.0.1.evil.example:7878"), Some("user@127.0.0.1"), Some("10.1.1.1")]
        {
            assert_eq!(status_of(host, &[], target).await, Err("forbidden_host".into()), "{host:?} {target}");
        }
        // Malformed, not forbidden (RFC 9112, 3.2).
        assert_eq!(status_of(None, &[], target).await, Err("invalid_request".into()), "no host, {target}");
        assert_eq!(
            status_of(Some("localhost"), &[("host", "evil.example")], target).await,
            Err("invalid_request".into()),
            "two hosts, {target}"
        );
    }
    for host in ["localhost:7878", "127.0.0.1", "[::1]:7878", "LocalHost:1234"] {
        assert_eq!(status_of(Some(host), &[], "/test/whoami").await, Ok(200), "{host}");
    }
    assert_eq!(status_of(Some("green.example.org"), &[], "/healthz").await, Ok(200));
    let both = status_of(Some("localhost"), &[], "http://evil.example/healthz").await;
    assert_eq!(both, Err("forbidden_host".into()), "the target may not name another host");
}

#[tokio::test]
async fn only_known_origins_are_accepted() {
    let site = |value| status_of(Some("localhost:7878"), Box::leak(Box::new([("origin", value)])), "/test/whoami");
    for own in ["http://localhost:7878", "http://localhost:5173", "https://127.0.0.1", "https://green.example.org"] {
        assert_eq!(site(own).await, Ok(200), "{own}");
    }
    for foreign in [
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "file://",
        "chrome-extension://localhost",
        "localhost",
        "http://user@localhost",
        "http://",
        "*",
    ] {
        assert_eq!(site(foreign).await, Err("forbidden_origin".into()), "{foreign}");
    }
    let two = [("origin", "http://localhost"), ("origin", "https://evil.example")];
    assert_eq!(status_of(Some("localhost"), &two, "/healthz").await, Err("forbidden_origin".into()));
}

#[tokio::test]
async fn a_cross_site_request_does_not_act_for_the_owner() {
    let made = |site, target| {
        let more: &'static [(&'static str, &'static str)] = Box::leak(Box::new([("sec-fetch-site", site)]));
        status_of(Some("localhost:7878"), more, target)
    };
    assert_eq!(made("cross-site", "/test/whoami").await, Err("forbidden_origin".into()));
    assert_eq!(made("cross-site", "/").await, Ok(200), "a link to the start page is fine");
    for site in ["none", "same-origin", "same-site"] {
        assert_eq!(made(site, "/test/whoami").await, Ok(200), "{site}");
    }
}
