use super::*;

fn ring(keys: &[u8]) -> Keyring {
    Keyring(keys.iter().map(|byte| Key::of(&[*byte; KEY_BYTES])).collect())
}

fn kept(ring: &Keyring, name: &str, version: u64, value: &str) -> SealedSecret {
    let (key_id, sealed) = ring.seal(name, version, &Secret::parse(value).unwrap()).unwrap();
    SealedSecret { name: name.to_owned(), version, key_id, sealed, ..SealedSecret::default() }
}

#[test]
fn a_value_comes_back_under_its_name_and_version_alone() {
    let ring = ring(&[1]);
    let a = kept(&ring, "a", 2, "sk-hidden");
    assert_eq!(ring.open(&a).unwrap().expose(), "sk-hidden");
    assert!(!a.sealed.windows(9).any(|part| part == b"sk-hidden"));
    assert_ne!(kept(&ring, "a", 2, "sk-hidden").sealed, a.sealed, "each time under another nonce");
    let altered = Err(OpenFault::Altered("a".to_owned()));
    let b = kept(&ring, "b", 2, "sk-other");
    assert_eq!(ring.open(&SealedSecret { sealed: b.sealed, ..a.clone() }), altered, "another row's");
    assert_eq!(ring.open(&SealedSecret { version: 3, ..a.clone() }), altered, "an earlier value");
    let mut bent = a.clone();
    bent.sealed[NONCE_BYTES] ^= 1;
    assert_eq!(ring.open(&bent), altered);
    assert_eq!(ring.open(&SealedSecret { sealed: vec![1; 8], ..a }), altered, "cut short");
}

#[test]
fn the_first_key_seals_all_open_and_another_one_says_which_is_wanted() {
    let (old, new) = (ring(&[1]), ring(&[2]));
    let a = kept(&old, "a", 2, "sk-hidden");
    let both = ring(&[2, 1]);
    assert_eq!(both.open(&a).unwrap().expose(), "sk-hidden");
    assert_eq!(kept(&both, "a", 3, "x").key_id, new.sealing_id().unwrap());
    let text = new.open(&a).unwrap_err().to_string();
    assert!(text.contains(&a.key_id) && text.contains(new.sealing_id().unwrap()), "{text}");
    let text = Keyring::default().open(&a).unwrap_err().to_string();
    assert!(text.contains("has no --secret-key-file"), "{text}");
    assert!(Keyring::default().seal("a", 1, &Secret::parse("x").unwrap()).is_none());
    assert_eq!(format!("{old:?}"), format!("[{:?}]", a.key_id));
}

#[test]
fn a_key_file_is_32_bytes_that_nobody_else_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let load = |content: &[u8], mode: u32| {
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Keyring::load(std::slice::from_ref(&path)).map(|ring| ring.sealing_id().unwrap().to_owned())
    };
    let raw = load(&[0xab; 32], 0o600).unwrap();
    assert_eq!(load("ab".repeat(32).as_bytes(), 0o400).unwrap(), raw);
    assert_eq!(load(format!("{}\n", STANDARD.encode([0xab; 32])).as_bytes(), 0o440).unwrap(), raw);
    for (content, mode) in [(&[0xab; 32], 0o604), (&[0xab; 32], 0o620), (&[0xab; 32], 0o644)] {
        assert!(matches!(load(content, mode), Err(KeyFileFault::Open(_))), "{mode:o}");
    }
    for content in [&b""[..], &[0xab; 31], &[0xab; 33], b"no key", "zz".repeat(32).as_bytes()] {
        assert!(matches!(load(content, 0o600), Err(KeyFileFault::NoKey(_))), "{content:?}");
    }
    std::fs::remove_file(&path).unwrap();
    let missing = Keyring::load(std::slice::from_ref(&path)).unwrap_err().to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
}
