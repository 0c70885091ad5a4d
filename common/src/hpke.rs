//! HPKE (RFC 9180), base mode, one message to one key: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. The
//! recipient's key is the one of its certificate, for which what TLS is made of here has no agreement.

use chacha20poly1305::aead::{Aead as _, Generate as _, KeyInit as _, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hkdf::Hkdf;
use p256::ecdh::{EphemeralSecret, SharedSecret, diffie_hellman};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p256::pkcs8::DecodePrivateKey as _;
use p256::{PublicKey, SecretKey};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Of the key agreement: "KEM" and its number.
const KEM_SUITE: &[u8] = b"KEM\x00\x10";
/// Of all three: key agreement, key derivation, encryption.
const SUITE: &[u8] = b"HPKE\x00\x10\x00\x01\x00\x03";
const VERSION: &[u8] = b"HPKE-v1";
/// Base mode: nothing but the recipient's key.
const MODE_BASE: u8 = 0;
/// Of a digest, of a shared secret, of a key.
const KEY_BYTES: usize = 32;

/// What was sealed cannot be opened, or nothing can be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this key does not open it, or it is not what was sealed")]
pub struct HpkeFault;

/// Whom something is sealed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient(PublicKey);

impl Recipient {
    /// A public key as a certificate holds it: a point of P-256. `None` for any other key.
    pub fn of_point(bytes: &[u8]) -> Option<Self> {
        PublicKey::from_sec1_bytes(bytes).ok().map(Recipient)
    }
}

/// What opens what was sealed for its public key.
#[derive(Debug)]
pub struct OpeningKey(SecretKey);

impl OpeningKey {
    /// A private key as PKCS #8, DER. `None` for one of another curve.
    pub fn of_pkcs8(der: &[u8]) -> Option<Self> {
        SecretKey::from_pkcs8_der(der).ok().map(OpeningKey)
    }

    /// Whom to seal for.
    pub fn recipient(&self) -> Recipient {
        Recipient(self.0.public_key())
    }
}

/// A sealed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The sender's part of the agreement.
    pub encapsulated_key: Vec<u8>,
    /// What only the recipient reads.
    pub ciphertext: Vec<u8>,
}

/// Seals for one recipient. Who opens it must name the same `info` and `associated`.
pub fn seal(to: &Recipient, info: &[u8], associated: &[u8], plain: &[u8]) -> Result<Sealed, HpkeFault> {
    let ephemeral = EphemeralSecret::try_generate().map_err(|_| HpkeFault)?;
    seal_with(&ephemeral.diffie_hellman(&to.0), &ephemeral.public_key(), to, info, associated, plain)
}

fn seal_with(
    agreed: &SharedSecret,
    ephemeral: &PublicKey,
    to: &Recipient,
    info: &[u8],
    associated: &[u8],
    plain: &[u8],
) -> Result<Sealed, HpkeFault> {
    let encapsulated_key = point(ephemeral);
    let (cipher, nonce) = schedule(agreed, &encapsulated_key, &point(&to.0), info)?;
    let payload = Payload { msg: plain, aad: associated };
    let ciphertext = cipher.encrypt(&nonce, payload).map_err(|_| HpkeFault)?;
    Ok(Sealed { encapsulated_key, ciphertext })
}

/// Opens what was sealed for this key.
pub fn open(
    key: &OpeningKey,
    sealed: &Sealed,
    info: &[u8],
    associated: &[u8],
) -> Result<Zeroizing<Vec<u8>>, HpkeFault> {
    let sender = PublicKey::from_sec1_bytes(&sealed.encapsulated_key).map_err(|_| HpkeFault)?;
    let agreed = diffie_hellman(key.0.to_nonzero_scalar(), sender.as_affine());
    let own = point(&key.0.public_key());
    let (cipher, nonce) = schedule(&agreed, &sealed.encapsulated_key, &own, info)?;
    let payload = Payload { msg: &sealed.ciphertext, aad: associated };
    cipher.decrypt(&nonce, payload).map(Zeroizing::new).map_err(|_| HpkeFault)
}

fn point(key: &PublicKey) -> Vec<u8> {
    key.to_sec1_point(false).as_bytes().to_vec()
}

/// The key schedule, for the first message.
fn schedule(
    agreed: &SharedSecret,
    encapsulated_key: &[u8],
    recipient: &[u8],
    info: &[u8],
) -> Result<(ChaCha20Poly1305, Nonce), HpkeFault> {
    let extracted = extract(&[], KEM_SUITE, b"eae_prk", agreed.raw_secret_bytes());
    let kem_context = [encapsulated_key, recipient].concat();
    let shared: Zeroizing<[u8; KEY_BYTES]> = expand(&*extracted, KEM_SUITE, b"shared_secret", &kem_context)?;
    let psk_id_hash = extract(&[], SUITE, b"psk_id_hash", &[]);
    let info_hash = extract(&[], SUITE, b"info_hash", info);
    let context = [&[MODE_BASE][..], &*psk_id_hash, &*info_hash].concat();
    let secret = extract(&*shared, SUITE, b"secret", &[]);
    let key: Zeroizing<[u8; KEY_BYTES]> = expand(&*secret, SUITE, b"key", &context)?;
    let nonce: Zeroizing<[u8; 12]> = expand(&*secret, SUITE, b"base_nonce", &context)?;
    Ok((ChaCha20Poly1305::new((&*key).into()), Nonce::from(*nonce)))
}

fn extract(salt: &[u8], suite: &[u8], label: &[u8], input: &[u8]) -> Zeroizing<[u8; KEY_BYTES]> {
    let labelled = Zeroizing::new([VERSION, suite, label, input].concat());
    let (extracted, _) = Hkdf::<Sha256>::extract(Some(salt), &labelled);
    Zeroizing::new(extracted.into())
}

fn expand<const N: usize>(
    key: &[u8],
    suite: &[u8],
    label: &[u8],
    info: &[u8],
) -> Result<Zeroizing<[u8; N]>, HpkeFault> {
    let length = u16::try_from(N).map_err(|_| HpkeFault)?.to_be_bytes();
    let labelled = [&length[..], VERSION, suite, label, info].concat();
    let mut expanded = Zeroizing::new([0; N]);
    let key = Hkdf::<Sha256>::from_prk(key).map_err(|_| HpkeFault)?;
    key.expand(&labelled, &mut *expanded).map_err(|_| HpkeFault)?;
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn key() -> OpeningKey {
        OpeningKey(
            SecretKey::from_slice(&bytes("a4d1c55836aa30f9b3fbb6ac98d338c877c2867dd3a77396d13f68d3ab150d3b"))
                .unwrap(),
        )
    }

    #[test]
    fn it_is_what_rfc_9180_says_in_its_appendix_a_5_1() {
        let info = bytes("4f6465206f6e2061204772656369616e2055726e");
        let plain = bytes("4265617574792069732074727574682c20747275746820626561757479");
        let sealed = Sealed {
            encapsulated_key: bytes(
                "04c07836a0206e04e31d8ae99bfd549380b072a1b1b82e563c935c095827824fc1559eac6fb9e3c70cd3193968994e7f\
                 e9781aa103f5b50e934b5b2f387e381291",
            ),
            ciphertext: bytes(
                "6469c41c5c81d3aa85432531ecf6460ec945bde1eb428cb2fedf7a29f5a685b4ccb0d057f03ea2952a27bb458b",
            ),
        };
        assert_eq!(*open(&key(), &sealed, &info, b"Count-0").unwrap(), plain);
        let ephemeral = bytes("7550253e1147aae48839c1f8af80d2770fb7a4c763afe7d0afa7e0f42a5b3689");
        let ephemeral = SecretKey::from_slice(&ephemeral).unwrap();
        let to = key().recipient();
        let agreed = diffie_hellman(ephemeral.to_nonzero_scalar(), to.0.as_affine());
        let again = seal_with(&agreed, &ephemeral.public_key(), &to, &info, b"Count-0", &plain).unwrap();
        assert_eq!(again, sealed);
    }

    #[test]
    fn only_the_recipient_opens_it_and_only_as_it_was_sealed() {
        let to = key().recipient();
        let sealed = seal(&to, b"info", b"associated", b"a secret").unwrap();
        assert_eq!(**open(&key(), &sealed, b"info", b"associated").unwrap(), *b"a secret");
        assert_ne!(
            seal(&to, b"info", b"associated", b"a secret").unwrap(),
            sealed,
            "each time by another key"
        );
        let other = OpeningKey(SecretKey::from_slice(&[7; 32]).unwrap());
        assert!(open(&other, &sealed, b"info", b"associated").is_err());
        assert!(open(&key(), &sealed, b"other", b"associated").is_err());
        assert!(open(&key(), &sealed, b"info", b"other").is_err());
        let mut altered = sealed.clone();
        altered.ciphertext[0] ^= 1;
        assert!(open(&key(), &altered, b"info", b"associated").is_err());
        altered = Sealed { encapsulated_key: vec![4; 65], ..sealed };
        assert!(open(&key(), &altered, b"info", b"associated").is_err(), "no point of the curve");
    }

    #[test]
    fn the_key_of_a_certificate_is_one_to_seal_for() {
        let pair = rcgen::KeyPair::generate().unwrap();
        let own = OpeningKey::of_pkcs8(&pair.serialize_der()).unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
        let facts = crate::certificate::read(certificate.der()).unwrap();
        assert_eq!(Recipient::of_point(&facts.public_key), Some(own.recipient()));
        let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&ed25519).unwrap();
        let facts = crate::certificate::read(certificate.der()).unwrap();
        assert_eq!(Recipient::of_point(&facts.public_key), None);
        assert!(OpeningKey::of_pkcs8(&ed25519.serialize_der()).is_none());
    }
}
