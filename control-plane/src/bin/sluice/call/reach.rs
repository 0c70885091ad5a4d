//! Where the control plane is and as whom it is called: the address, the token, the trust in an https
//! server. The token goes over TLS or loopback, unless told otherwise.

use std::path::Path;

use http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig};
use tonic::{Request, Status};

use super::refusal::WHERE_TOKENS_ARE;
use crate::args::ConnectArgs;
use crate::fault::Fault;

const PEM_MARK: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Puts the token on each request.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

impl Bearer {
    /// A token that was read from somewhere.
    pub fn new(token: &str, from: &str) -> Result<Self, Fault> {
        let mut value = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| {
            Fault::error(format!("what is in {from} is no token: it holds line breaks or control characters"))
                .help(WHERE_TOKENS_ARE)
        })?;
        value.set_sensitive(true);
        Ok(Bearer(value))
    }
}

/// The address, checked.
pub fn server(given: &str) -> Result<Uri, Fault> {
    let advice = "give a URL such as http://127.0.0.1:7443 by --server or SLUICE_SERVER";
    let refused =
        |why: &str| Fault::error(format!("\"{given}\" is no address of a control plane: {why}")).help(advice);
    let uri: Uri = given.parse().map_err(|cause| refused(&format!("{cause}")))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(refused(&format!("{other}:// is neither http:// nor https://"))),
        None => return Err(refused("http:// or https:// is missing")),
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(refused("it has a path"));
    }
    Ok(uri)
}

/// Whether the token may go there.
pub fn check_plaintext(uri: &Uri, insecure_plaintext: bool) -> Result<(), Fault> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    if uri.scheme_str() == Some("https") || is_loopback || insecure_plaintext {
        return Ok(());
    }
    Err(Fault::error(format!("the admin token would go in clear to {host}")).help(
        "use https:// (--ca-file for a private authority), or --insecure-plaintext on a trusted network",
    ))
}

/// The token and where it is from. A named file goes before the environment's token.
pub fn token(args: &ConnectArgs) -> Result<(String, String), Fault> {
    let named = args.token_file.as_ref().filter(|path| !path.as_os_str().is_empty());
    let (text, from) = match (named, &args.token) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|cause| {
                Fault::error(format!("cannot read the token file {}: {cause}", path.display()))
                    .help(WHERE_TOKENS_ARE)
            })?;
            (text, path.display().to_string())
        }
        (None, Some(token)) => (token.clone(), "SLUICE_TOKEN".to_owned()),
        (None, None) => return Err(Fault::error("no admin token").help(WHERE_TOKENS_ARE)),
    };
    match text.trim() {
        "" => Err(Fault::error(format!("the token from {from} is empty")).help(WHERE_TOKENS_ARE)),
        token => Ok((token.to_owned(), from)),
    }
}

/// Whom to trust: the authority of a file, else the public ones.
pub fn tls(ca_file: Option<&Path>) -> Result<ClientTlsConfig, Fault> {
    let Some(path) = ca_file.filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(ClientTlsConfig::new().trust_anchors(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()));
    };
    let pem = std::fs::read(path).map_err(|cause| {
        Fault::error(format!("cannot read the authority's file {}: {cause}", path.display()))
    })?;
    // Without this, a file of another kind shows only as an issuer that nobody knows.
    if !pem.windows(PEM_MARK.len()).any(|bytes| bytes == PEM_MARK) {
        return Err(Fault::error(format!(
            "the authority's file {} holds no certificate in PEM form",
            path.display()
        )));
    }
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_refused_with_an_example() {
        let cases = [
            ("127.0.0.1:7443", "missing"),
            ("localhost", "missing"),
            ("ftp://h:1", "neither"),
            ("http://h:1/admin", "path"),
            ("http://", ""),
        ];
        for (given, why) in cases {
            let fault = server(given).unwrap_err();
            assert!(fault.message.contains(why), "{given}: {}", fault.message);
            assert!(fault.help.unwrap().contains("http://127.0.0.1:7443"));
        }
    }

    #[test]
    fn a_token_goes_in_clear_to_this_host_alone() {
        let check = |uri: &str, insecure| check_plaintext(&uri.parse().unwrap(), insecure).is_ok();
        for uri in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://cp.example:1"] {
            assert!(check(uri, false), "{uri}");
        }
        for uri in ["http://cp.example:1", "http://10.0.0.1:1", "http://localhost.example:1"] {
            assert!(!check(uri, false), "{uri}");
            assert!(check(uri, true), "{uri}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_is_no_authority() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        std::fs::write(&path, "not a certificate").unwrap();
        assert!(tls(Some(&path)).unwrap_err().message.contains("holds no certificate in PEM form"));
        assert!(tls(Some(Path::new("/no/such/ca.pem"))).unwrap_err().message.contains("cannot read"));
        assert!(tls(None).is_ok() && tls(Some(Path::new(""))).is_ok());
    }
}
