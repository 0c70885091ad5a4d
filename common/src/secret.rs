//! A credential in memory: never printed, wiped when it is dropped.

use std::fmt;

use zeroize::Zeroizing;

/// Longest credential: far above any token, and small enough for every header and address.
pub const SECRET_BYTES_MAX: usize = 16 * 1024;

/// Longest name of one.
const NAME_BYTES_MAX: usize = 64;

/// Whether the control plane keeps a credential by such a name: 1 to 64 letters, digits, dots, dashes or underscores,
/// the first a letter or digit.
pub fn is_secret_name(name: &str) -> bool {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_legal)
}

/// A credential, fit to be shown in a header.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// Why a text is no credential. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nothing but blanks.
    #[error("is empty")]
    Empty,
    /// Above [`SECRET_BYTES_MAX`].
    #[error("is longer than 16 KiB")]
    TooLong,
    /// A line break, a control character, or no text at all.
    #[error("has characters that a header cannot carry")]
    NoHeader,
}

impl Secret {
    /// A credential without the blanks around it.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Unusable::Empty);
        }
        if text.len() > SECRET_BYTES_MAX {
            return Err(Unusable::TooLong);
        }
        // What is not ASCII means something else to each upstream.
        if !text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            return Err(Unusable::NoHeader);
        }
        Ok(Secret(Zeroizing::new(text.to_owned())))
    }

    /// The same of bytes that should be text.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, Unusable> {
        Secret::parse(std::str::from_utf8(bytes).map_err(|_| Unusable::NoHeader)?)
    }

    /// The credential, for the one who shows or seals it alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_documents_and_command_lines() {
        for (name, is_one) in [
            ("reseller", true),
            ("1.a_b-C", true),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
            ("", false),
            (".a", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(is_secret_name(name), is_one, "{name:?}");
        }
    }

    #[test]
    fn a_credential_is_what_a_header_can_carry_and_is_never_printed() {
        let secret = Secret::parse(" sk-hidden \n").unwrap();
        assert_eq!(secret.expose(), "sk-hidden");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        for (text, why) in [
            (" \n", Unusable::Empty),
            ("a\nb", Unusable::NoHeader),
            ("schlüssel", Unusable::NoHeader),
            ("a\0", Unusable::NoHeader),
            (&*"x".repeat(SECRET_BYTES_MAX + 1), Unusable::TooLong),
        ] {
            assert_eq!(Secret::parse(text).unwrap_err(), why, "{text:?}");
        }
        assert_eq!(Secret::parse_bytes(&[0xff]).unwrap_err(), Unusable::NoHeader);
        assert_eq!(Secret::parse(&"x".repeat(SECRET_BYTES_MAX)).unwrap().expose().len(), SECRET_BYTES_MAX);
    }
}
