//! What is signed, by whom, and which authorities are kept.

use common::settings::TlsFiles;

use super::*;

const NOW_MS: u64 = 1_796_046_279_000;
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn csr(key: &KeyPair) -> Vec<u8> {
    CertificateParams::default().serialize_request(key).unwrap().der().to_vec()
}

fn ids(bundle: &Bundle) -> Vec<Sha> {
    bundle.authorities().iter().map(|authority| authority.facts.key_sha256).collect()
}

#[test]
fn a_node_gets_a_certificate_for_its_key_and_its_id_and_nothing_else_that_it_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let own = Authorities::own(&folder, LIFE, NOW_MS).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut asks = CertificateParams::new(vec!["admin.example".to_owned()]).unwrap();
    asks.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let greedy = asks.serialize_request(&key);
    let asked = match greedy {
        Ok(greedy) => greedy.der().to_vec(),
        Err(_) => csr(&key),
    };
    let issued = own.sign("node-1", &asked, NOW_MS).unwrap();
    assert_eq!(issued.facts.node_id.as_deref(), Some("node-1"));
    assert_eq!(issued.facts.key_sha256, digest(&key.subject_public_key_info()));
    assert_eq!(issued.facts.expires_at_ms, NOW_MS + LIFE.as_millis() as u64);
    assert!(!issued.facts.is_authority);
    assert_eq!(issued.authority_sha256, ids(&own.now())[0]);
    assert!(!issued.pem.contains("admin.example"));
    let again = own.sign("node-1", &asked, NOW_MS).unwrap();
    assert_ne!(again.facts.serial, issued.facts.serial);
}

#[test]
fn a_request_that_is_not_signed_by_its_own_key_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let own = Authorities::own(&Folder::open(dir.path()).unwrap(), LIFE, NOW_MS).unwrap();
    let mut forged = csr(&KeyPair::generate().unwrap());
    let last = forged.len() - 1;
    forged[last] ^= 1;
    assert!(own.sign("node-1", &forged, NOW_MS).is_err());
    assert!(own.sign("node-1", b"nothing", NOW_MS).is_err());
}

#[test]
fn the_authority_is_made_once_and_only_its_owner_reads_its_key() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let first = Authorities::own(&folder, LIFE, NOW_MS).unwrap().now();
    assert_eq!(ids(&Authorities::own(&folder, LIFE, NOW_MS).unwrap().now()), ids(&first));
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca.pem"), mode("ca.crt")), (0o600, 0o644));
    let public = std::fs::read_to_string(dir.path().join("ca.crt")).unwrap();
    assert!(public == first.pem() && !public.contains("PRIVATE"));
    std::fs::write(dir.path().join("ca.pem"), public).unwrap();
    let fault = Authorities::own(&folder, LIFE, NOW_MS).unwrap_err();
    assert!(fault.to_string().contains("there is no key in it"), "{fault}");
}

#[test]
fn after_a_rotation_the_new_one_signs_and_the_old_one_stays_until_nothing_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let own = Authorities::own(&folder, LIFE, NOW_MS).unwrap();
    let old = ids(&own.now())[0];
    let rotated = own.rotate(NOW_MS).unwrap().unwrap();
    let new = ids(&rotated)[0];
    assert_eq!(ids(&rotated), [new, old]);
    let key = KeyPair::generate().unwrap();
    assert_eq!(own.sign("n", &csr(&key), NOW_MS).unwrap().authority_sha256, new);
    assert!(own.server_pair(&["localhost".to_owned()], NOW_MS).unwrap().is_some(), "by the old one");
    let read = Authorities::own(&folder, LIFE, NOW_MS).unwrap();
    assert_eq!(ids(&read.now()), [new, old], "over a restart");
    assert!(!own.retire(|needed| *needed == old).unwrap());
    assert!(own.retire(|_| false).unwrap());
    assert_eq!(ids(&own.now()), [new]);
    assert_eq!(ids(&Authorities::own(&folder, LIFE, NOW_MS).unwrap().now()), [new]);
}

#[test]
fn given_authorities_are_read_again_when_their_files_change_and_faulty_ones_are_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles { cert: dir.path().join("ca.crt"), key: dir.path().join("ca.key") };
    let write = |signs: &Authority, others: &[&Authority]| {
        let pems = std::iter::once(signs).chain(others.iter().copied()).map(|a| a.pem.clone());
        std::fs::write(&files.cert, pems.collect::<String>()).unwrap();
        std::fs::write(&files.key, signs.key_pem.clone().unwrap()).unwrap();
    };
    let (old, new) = (make(NOW_MS).unwrap(), make(NOW_MS).unwrap());
    write(&old, &[]);
    let given = Authorities::given(files.clone(), LIFE).unwrap();
    assert!(!given.look().unwrap());
    assert!(given.rotate(NOW_MS).unwrap().is_none(), "the operator does that");
    std::fs::write(&files.key, new.key_pem.clone().unwrap()).unwrap();
    assert!(given.look().is_err());
    assert!(!given.look().unwrap(), "told once");
    assert_eq!(ids(&given.now()), [old.facts.key_sha256]);
    write(&new, &[&old]);
    assert!(given.look().unwrap());
    assert_eq!(ids(&given.now()), [new.facts.key_sha256, old.facts.key_sha256]);
}
