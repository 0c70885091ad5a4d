//! The credentials of channels, sealed for one node: as they travel and as they lie on its disk.

use std::collections::BTreeMap;

use prost::Message as _;
use zeroize::Zeroizing;

use crate::hpke::{self, HpkeFault, OpeningKey, Recipient};
use crate::pb::fleet as pb;
use crate::secret::Secret;
use crate::snapshot::Sha;

/// Begins what is bound to the key, so that nothing else that is sealed for it is taken for this.
const INFO: &[u8] = b"sluice.fleet.v1.SealedSecrets\0";

/// Credentials by name.
pub type Secrets = BTreeMap<String, Secret>;

/// Why there are no credentials in something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealedFault {
    /// It is sealed for another key, or was altered.
    #[error("it is sealed for another key than this node's, or was altered")]
    Foreign(#[from] HpkeFault),
    /// It is no list of credentials.
    #[error("it is no list of secrets")]
    Undecodable,
    /// One of them is none.
    #[error("the secret {0:?} is no credential")]
    Unusable(String),
}

/// Seals all credentials for a node.
pub fn seal(
    to: &Recipient,
    node_id: &str,
    version: u64,
    sha256: &Sha,
    secrets: &Secrets,
) -> Result<pb::SealedSecrets, HpkeFault> {
    let mut set = pb::SecretSet {
        secrets: secrets
            .iter()
            .map(|(name, value)| pb::ChannelSecret { name: name.clone(), value: value.expose().to_owned() })
            .collect(),
    };
    let plain = Zeroizing::new(set.encode_to_vec());
    wipe(&mut set);
    let sealed = hpke::seal(to, &info(node_id), &associated(version, sha256), &plain)?;
    let hpke::Sealed { encapsulated_key, ciphertext } = sealed;
    Ok(pb::SealedSecrets { version, sha256: sha256.to_vec(), encapsulated_key, ciphertext })
}

/// Opens what was sealed for this node.
pub fn open(key: &OpeningKey, node_id: &str, sealed: &pb::SealedSecrets) -> Result<Secrets, SealedFault> {
    let pb::SealedSecrets { version, sha256, encapsulated_key, ciphertext } = sealed.clone();
    let sealed = hpke::Sealed { encapsulated_key, ciphertext };
    let plain = hpke::open(key, &sealed, &info(node_id), &associated(version, &sha256))?;
    let mut set = pb::SecretSet::decode(plain.as_slice()).map_err(|_| SealedFault::Undecodable)?;
    let secrets = set.secrets.iter().map(|one| {
        let secret = Secret::parse(&one.value).map_err(|_| SealedFault::Unusable(one.name.clone()))?;
        Ok((one.name.clone(), secret))
    });
    let secrets = secrets.collect();
    wipe(&mut set);
    secrets
}

fn info(node_id: &str) -> Vec<u8> {
    [INFO, node_id.as_bytes()].concat()
}

fn associated(version: u64, sha256: &[u8]) -> Vec<u8> {
    [&version.to_be_bytes()[..], sha256].concat()
}

fn wipe(set: &mut pb::SecretSet) {
    use zeroize::Zeroize as _;
    set.secrets.iter_mut().for_each(|one| one.value.zeroize());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> OpeningKey {
        OpeningKey::of_pkcs8(&rcgen::KeyPair::generate().unwrap().serialize_der()).unwrap()
    }

    fn secrets() -> Secrets {
        let one = |name: &str, value: &str| (name.to_owned(), Secret::parse(value).unwrap());
        Secrets::from([one("reseller", "sk-hidden"), one("other", "x")])
    }

    #[test]
    fn what_is_sealed_for_a_node_is_read_by_that_node_alone() {
        let key = key();
        let sealed = seal(&key.recipient(), "n1", 7, &[9; 32], &secrets()).unwrap();
        assert_eq!((sealed.version, &sealed.sha256[..]), (7, &[9; 32][..]));
        assert_eq!(open(&key, "n1", &sealed).unwrap(), secrets());
        let encoded = sealed.encode_to_vec();
        for word in [&b"sk-hidden"[..], b"reseller"] {
            assert!(!encoded.windows(word.len()).any(|part| part == word));
        }
        assert!(matches!(open(&key, "n2", &sealed), Err(SealedFault::Foreign(_))), "of another name");
        assert!(matches!(open(&self::key(), "n1", &sealed), Err(SealedFault::Foreign(_))));
        for moved in [
            pb::SealedSecrets { version: 8, ..sealed.clone() },
            pb::SealedSecrets { sha256: vec![8; 32], ..sealed.clone() },
        ] {
            assert!(matches!(open(&key, "n1", &moved), Err(SealedFault::Foreign(_))), "{moved:?}");
        }
    }

    #[test]
    fn a_list_of_none_is_a_list() {
        let key = key();
        let sealed = seal(&key.recipient(), "n1", 1, &[0; 32], &Secrets::new()).unwrap();
        assert_eq!(open(&key, "n1", &sealed).unwrap(), Secrets::new());
    }
}
