//! From where a form was sent, and the cookie that goes with it. A browser says both in headers that no page can write.
//! Pure.

use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, Uri};

/// The cookie of a session. The longer name is for browsers that came by TLS: none lets a page in clear text set it.
const COOKIES: [&str; 2] = ["__Secure-sluice-admin", "sluice-admin"];

/// How a browser reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By TLS, up to us or to a proxy before us.
    Tls,
    /// In clear text.
    Clear,
}

/// Whether a form was sent by one of our own pages: by which way then, else why not.
pub fn of_form(headers: &HeaderMap, uri: &Uri) -> Result<Way, &'static str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return Err("another site's page sent this form");
    }
    let origin = text(ORIGIN.as_str()).ok_or("the browser does not say which page sent this form")?;
    let (way, from) = match origin.split_once("://") {
        Some(("https", from)) => (Way::Tls, from),
        Some(("http", from)) => (Way::Clear, from),
        _ => return Err("another site's page sent this form"),
    };
    let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| text(HOST.as_str()));
    let host = host.ok_or("the request does not say which host it is for")?;
    let port = if way == Way::Tls { ":443" } else { ":80" };
    let bare = |name: &str| name.strip_suffix(port).unwrap_or(name).to_ascii_lowercase();
    if bare(from) == bare(host) {
        Ok(way)
    } else {
        Err("another site's page sent this form, or a proxy before the control plane changes the Host header")
    }
}

/// The cookie that a browser shows.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs: Vec<_> =
        all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('=')).collect();
    COOKIES.iter().find_map(|name| pairs.iter().find(|(own, _)| own == name)).map(|(_, value)| *value)
}

/// What sets the cookie for so long; an empty one goes at once.
pub fn set_cookie(value: &str, way: Way, seconds: u64) -> String {
    let (name, secure) = match way {
        Way::Tls => (COOKIES[0], "; Secure"),
        Way::Clear => (COOKIES[1], ""),
    };
    format!("{name}={value}; Path=/admin; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_a_form_of_our_own_pages_counts() {
        for (pairs, expected) in [
            (&[("host", "plane:7480"), ("origin", "http://plane:7480")][..], Some(Way::Clear)),
            (&[("host", "plane"), ("origin", "https://Plane")], Some(Way::Tls)),
            (&[("host", "plane:443"), ("origin", "https://plane")], Some(Way::Tls)),
            (
                &[("host", "plane"), ("origin", "http://plane"), ("sec-fetch-site", "same-origin")],
                Some(Way::Clear),
            ),
            (&[("host", "plane"), ("origin", "http://plane"), ("sec-fetch-site", "same-site")], None),
            (&[("host", "plane"), ("origin", "http://plane"), ("sec-fetch-site", "none")], None),
            (&[("host", "plane:7480"), ("origin", "http://plane:7481")], None),
            (&[("host", "plane:80"), ("origin", "https://plane")], None),
            (&[("host", "plane"), ("origin", "http://plane.evil.example")], None),
            (&[("host", "plane"), ("origin", "null")], None),
            (&[("host", "plane"), ("origin", "ftp://plane")], None),
            (&[("host", "plane")], None),
            (&[("origin", "http://plane")], None),
        ] {
            let said = of_form(&headers(pairs), &Uri::from_static("/admin/login"));
            assert_eq!(said.ok(), expected, "{pairs:?}");
        }
        let http2 = Uri::from_static("https://plane/admin/login");
        assert_eq!(of_form(&headers(&[("origin", "https://plane")]), &http2), Ok(Way::Tls));
    }

    #[test]
    fn of_two_cookies_the_one_counts_that_only_tls_can_set() {
        for (shown, expected) in [
            ("sluice-admin=a", Some("a")),
            ("theme=x; sluice-admin=a; __Secure-sluice-admin=b", Some("b")),
            ("xsluice-admin=a", None),
            ("", None),
        ] {
            assert_eq!(cookie(&headers(&[("cookie", shown)])), expected, "{shown}");
        }
        assert_eq!(cookie(&HeaderMap::new()), None);
    }

    #[test]
    fn the_cookie_is_for_us_alone_and_for_no_script() {
        let set = set_cookie("abc", Way::Tls, 60);
        let want = "__Secure-sluice-admin=abc; Path=/admin; Max-Age=60; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(set, want);
        assert!(!set_cookie("abc", Way::Clear, 60).contains("Secure"));
    }
}
