//! The texts of a catalog: names, addresses, references to credentials, headers. Each function says
//! what is wrong with one, without repeating it where it may be a credential. Pure.

use http::{HeaderName, HeaderValue, Uri};

use crate::secret::is_secret_name;

/// Longest id of a channel, name of a model or upstream's name.
const NAME_BYTES_MAX: usize = 256;
const CHANNEL_BYTES_MAX: usize = 64;

/// Headers that the gateway or the connection owns.
const OWNED_HEADERS: [&str; 16] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-request-id",
    "x-should-retry",
];

/// Words in the name of a header or parameter that carries a credential.
const SECRET_WORDS: [&str; 12] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
];

/// Why a text is not what its key wants.
pub(super) type Refused = String;

/// The id of a channel: it becomes a header's value, a label and an argument.
pub(super) fn channel_id(id: &str) -> Result<(), Refused> {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let begins = id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if begins && id.bytes().all(is_legal) && id.len() <= CHANNEL_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "a channel's id has 1 to {CHANNEL_BYTES_MAX} letters, digits, dots, dashes or underscores, and begins with a \
         letter or digit"
    ))
}

/// The name of a model, ours or the upstream's.
pub(super) fn model_name(name: &str) -> Result<(), Refused> {
    let is_legal = |c: char| !c.is_control() && !c.is_whitespace();
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_legal) {
        return Ok(());
    }
    Err(format!("a model's name has 1 to {NAME_BYTES_MAX} bytes without white space or control characters"))
}

/// The address that paths are appended to, without a slash at its end.
pub(super) fn base_url(text: &str) -> Result<String, Refused> {
    const EXAMPLE: &str = "must be an address such as \"https://api.example.com/v1\"";
    let (scheme, rest) = text.split_once("://").ok_or(EXAMPLE)?;
    if !["http", "https"].contains(&scheme) {
        return Err("must begin with http:// or https://".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(
            "must not hold a credential; give it in `credential`, as env:NAME or file:PATH".to_owned()
        );
    }
    if rest.contains('?') {
        return Err("must not have a query; give its parameters in `query`".to_owned());
    }
    if rest.contains('#') {
        return Err("must not have a fragment".to_owned());
    }
    let uri: Uri = text.parse().map_err(|_| EXAMPLE)?;
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if !is_port {
        return Err("must have a port from 1 to 65535, or none".to_owned());
    }
    if uri.host().is_none_or(|host| host.is_empty() || host.starts_with('.')) {
        return Err(EXAMPLE.to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Whether an address is in clear and not on the node's own machine.
pub(super) fn is_clear_and_far(base_url: &str) -> bool {
    let Some(rest) = base_url.strip_prefix("http://") else { return false };
    let uri: Option<Uri> = format!("http://{rest}").parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host != "localhost" && !address.is_some_and(|address| address.is_loopback())
}

/// A reference to a credential, which the node resolves.
pub(super) fn credential(text: &str) -> Result<(), Refused> {
    const CLEAR: &str = "must be a reference, env:NAME, file:PATH or secret:NAME, and never the credential itself; \
                         if this is one, it was shown to whoever read the document and wants to be replaced";
    if let Some(name) = text.strip_prefix("secret:") {
        return if is_secret_name(name) {
            Ok(())
        } else {
            Err("secret: wants the name of a secret that the control plane keeps".to_owned())
        };
    }
    if let Some(name) = text.strip_prefix("env:") {
        let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        let is_name = begins && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return if is_name {
            Ok(())
        } else {
            Err("env: wants the name of an environment variable".to_owned())
        };
    }
    match text.strip_prefix("file:") {
        Some(path) => file_path(path),
        None => Err(CLEAR.to_owned()),
    }
}

/// The name of a secret that a reference to a credential names, if it names one.
pub(super) fn secret_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("secret:").filter(|name| is_secret_name(name))
}

/// `file:PATH` → the path.
pub(super) fn file_reference(text: &str) -> Result<String, Refused> {
    let path = text.strip_prefix("file:").ok_or("must be file:PATH, a PEM file on the nodes")?;
    file_path(path)?;
    Ok(path.to_owned())
}

fn file_path(path: &str) -> Result<(), Refused> {
    if path.starts_with('/') && !path.chars().any(char::is_control) {
        return Ok(());
    }
    Err("file: wants an absolute path on the nodes".to_owned())
}

/// A header that each request to a channel carries; returns its name in lower case.
pub(super) fn header(name: &str, value: &str) -> Result<String, Refused> {
    let legal: HeaderName = name.parse().map_err(|_| "is no legal name of a header")?;
    let name = legal.as_str();
    if OWNED_HEADERS.contains(&name) || name.starts_with("x-sluice-") {
        return Err("is set by the gateway itself".to_owned());
    }
    not_a_credential(name, value)?;
    let is_text = HeaderValue::from_str(value).is_ok_and(|value| value.to_str().is_ok());
    if !is_text || value.trim() != value || value.is_empty() {
        return Err("must have a value of visible ASCII characters, without spaces around it".to_owned());
    }
    Ok(name.to_owned())
}

/// A parameter that is appended to each request's address.
pub(super) fn parameter(name: &str, value: &str) -> Result<(), Refused> {
    if name.is_empty() || name.chars().any(char::is_control) || value.chars().any(char::is_control) {
        return Err("must have a name, and no control characters".to_owned());
    }
    not_a_credential(name, value)
}

/// The header that a credential is shown in; returns its name in lower case.
pub(super) fn auth_header(name: &str) -> Result<String, Refused> {
    let legal: HeaderName = name.parse().map_err(|_| "is no legal name of a header")?;
    if OWNED_HEADERS.contains(&legal.as_str()) || legal.as_str().starts_with("x-sluice-") {
        return Err("is set by the gateway itself".to_owned());
    }
    Ok(legal.as_str().to_owned())
}

/// What stands before a credential in its header, such as `Token `.
pub(super) fn auth_prefix(prefix: &str) -> Result<String, Refused> {
    let is_scheme = |word: &str| {
        word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_') && word.len() <= 32
    };
    if prefix.is_empty() || !is_scheme(prefix.trim_end_matches([' ', '=', ':'])) {
        const WANTED: &str = "must be a word, such as \"Token \", with the space that follows it; the credential itself \
                              stands in `credential`";
        return Err(WANTED.to_owned());
    }
    Ok(prefix.to_owned())
}

/// The parameter of the query that a credential is shown in.
pub(super) fn auth_parameter(name: &str) -> Result<String, Refused> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err("must be the name of a parameter, without control characters".to_owned());
    }
    Ok(name.to_owned())
}

/// Where the operations of a dialect lie behind `base_url`.
pub(super) fn path(template: &str) -> Result<(), Refused> {
    const EXAMPLE: &str = "must be a path such as \"/openai/deployments/{model}{operation}\"";
    let mut rest = template;
    while let Some((_, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').ok_or("has a { without its }")?;
        if !["model", "operation"].contains(&name) {
            return Err(format!(
                "there is no {{{name}}}: only {{model}} and {{operation}} stand for something"
            ));
        }
        rest = behind;
    }
    if template.contains(['?', '#']) {
        return Err("must not have a query or a fragment; give parameters in `query`".to_owned());
    }
    if !template.starts_with('/') && !template.starts_with("{operation}") {
        return Err(EXAMPLE.to_owned());
    }
    let filled = template.replace("{operation}", "/x").replace("{model}", "x");
    let is_plain = filled.parse::<Uri>().is_ok_and(|uri| uri.path() == filled);
    let is_odd = filled.contains("//") || filled.split('/').any(|part| part == "." || part == "..");
    if !is_plain || is_odd || template.len() > NAME_BYTES_MAX {
        return Err(EXAMPLE.to_owned());
    }
    Ok(())
}

fn not_a_credential(name: &str, value: &str) -> Result<(), Refused> {
    let name = name.to_ascii_lowercase();
    let is_secret_name =
        name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| SECRET_WORDS.contains(&word));
    let value = value.trim_start().to_ascii_lowercase();
    let is_secret_value = ["bearer ", "basic ", "sk-"].iter().any(|prefix| value.starts_with(prefix));
    if is_secret_name || is_secret_value {
        let message =
            "would be a credential in clear text; give it in `credential`, as env:NAME or file:PATH";
        return Err(message.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_http_without_credential_query_or_fragment() {
        let good = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
            ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
            ("http://[::1]:8001/v1", "http://[::1]:8001/v1"),
            ("http://[::1]", "http://[::1]"),
            ("https://a_b.internal/x/y", "https://a_b.internal/x/y"),
        ];
        for (text, kept) in good {
            assert_eq!(base_url(text).as_deref(), Ok(kept), "{text}");
        }
        let bad = [
            ("", "address such as"),
            ("api.openai.com", "address such as"),
            ("ftp://x/", "http:// or https://"),
            ("HTTPS//x", "address such as"),
            ("https://", "address such as"),
            ("https:///v1", "address such as"),
            ("https://user:pw@x/v1", "credential"),
            ("https://sk-key@x/v1", "credential"),
            ("https://x/v1?api-version=1", "query"),
            ("https://x/v1#a", "fragment"),
            ("https://x:0/v1", "port"),
            ("https://x:99999/v1", "port"),
            ("https://x:/v1", "port"),
            ("https://a b/v1", "address such as"),
        ];
        for (text, part) in bad {
            let refused = base_url(text).unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    #[test]
    fn an_address_in_clear_is_told_from_one_on_this_machine() {
        for near in ["https://x/v1", "http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:2"] {
            assert!(!is_clear_and_far(near), "{near}");
        }
        for far in ["http://x/v1", "http://10.0.0.1:80", "http://localhost.example"] {
            assert!(is_clear_and_far(far), "{far}");
        }
    }

    #[test]
    fn a_credential_is_a_reference_and_is_never_repeated() {
        for good in ["env:OPENAI_API_KEY", "env:_x1", "file:/run/secrets/openai"] {
            assert_eq!(credential(good), Ok(()), "{good}");
        }
        for bad in [
            "sk-abcdef",
            "Bearer abcdef",
            "abcdef",
            "",
            "env:",
            "env:sk-abcdef",
            "file:",
            "file:abcdef",
            "secret:",
            "secret:ab cdef",
        ] {
            let refused = credential(bad).unwrap_err();
            assert!(!refused.contains("abcdef"), "{refused}");
            assert_eq!(secret_name(bad), None);
        }
        assert_eq!(credential("secret:reseller"), Ok(()));
        assert_eq!(secret_name("secret:reseller"), Some("reseller"));
        assert_eq!(secret_name("env:reseller"), None);
    }

    #[test]
    fn headers_are_legal_ours_to_set_and_no_credentials() {
        assert_eq!(header("Anthropic-Version", "2023-06-01").as_deref(), Ok("anthropic-version"));
        assert_eq!(header("HTTP-Referer", "https://example.com").as_deref(), Ok("http-referer"));
        assert_eq!(header("x-max-tokens", "1").as_deref(), Ok("x-max-tokens"));
        for name in [
            "Authorization",
            "x-api-key",
            "api-key",
            "X-Goog-Api-Key",
            "cookie",
            "x-auth-token",
            "cf-access-client-secret",
        ] {
            assert!(header(name, "v").unwrap_err().contains("credential"), "{name}");
        }
        assert!(header("x-other", "Bearer abc").unwrap_err().contains("credential"));
        for name in ["host", "Content-Length", "transfer-encoding", "x-sluice-gate"] {
            assert!(header(name, "v").unwrap_err().contains("gateway"), "{name}");
        }
        for (name, value) in [
            ("", "v"),
            ("a b", "v"),
            ("x\u{e4}", "v"),
            ("x", ""),
            ("x", " v"),
            ("x", "a\nb"),
            ("x", "\u{e4}"),
        ] {
            assert!(header(name, value).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn parameters_are_no_credentials() {
        assert_eq!(parameter("api-version", "2024-10-21"), Ok(()));
        for name in ["key", "api_key", "access_token", "sig"] {
            assert!(parameter(name, "v").unwrap_err().contains("credential"), "{name}");
        }
        assert!(parameter("", "v").is_err());
    }

    #[test]
    fn names_fit_into_headers_labels_and_arguments() {
        for good in ["openai-direct", "a", "0.b_c-D"] {
            assert_eq!(channel_id(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", ".a", "a b", "a/b", "\u{e4}", &"a".repeat(65)] {
            assert!(channel_id(bad).is_err(), "{bad}");
        }
        for good in ["gpt-4o", "meta-llama/Llama-3.1-70B:free", "modèle"] {
            assert_eq!(model_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", " a", "a\n", &"a".repeat(257)] {
            assert!(model_name(bad).is_err(), "{bad}");
        }
    }
}
