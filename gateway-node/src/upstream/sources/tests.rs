use super::*;

struct Place {
    dir: tempfile::TempDir,
    sources: Sources,
}

impl Place {
    fn new() -> Self {
        Place { dir: tempfile::tempdir().unwrap(), sources: Sources::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn reference(&self, name: &str) -> String {
        format!("file:{}", self.path(name).display())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// As those write who are careful.
    fn replace(&self, name: &str, text: &str) {
        self.write("beside", text);
        std::fs::rename(self.path("beside"), self.path(name)).unwrap();
    }

    fn shown(&self, name: &str) -> (Option<String>, Option<String>) {
        let Found { secret, fault } = self.sources.find(&self.reference(name));
        (secret.map(|secret| secret.expose().to_owned()), fault)
    }
}

#[test]
fn a_file_that_is_replaced_or_rewritten_gives_another_credential() {
    let place = Place::new();
    place.write("key", "sk-1\n");
    assert_eq!(place.shown("key"), (Some("sk-1".to_owned()), None));
    assert!(!place.sources.look(), "nothing has changed");
    place.replace("key", "sk-2\n");
    assert!(place.sources.look());
    assert_eq!(place.shown("key").0.as_deref(), Some("sk-2"));
    place.replace("key", "sk-2b\n");
    place.shown("key");
    assert!(place.sources.look(), "also where somebody else has found it first");
    assert!(!place.sources.look());
    place.write("key", "sk-3, of another length\n");
    assert!(place.sources.look());
    assert_eq!(place.shown("key").0.as_deref(), Some("sk-3, of another length"));
    place.replace("key", "sk-3, of another length");
    assert!(!place.sources.look(), "another file, and the same credential");
}

#[test]
fn a_folder_that_is_swapped_under_a_link_is_seen() {
    let place = Place::new();
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, place.path("data.new")).unwrap();
        std::fs::rename(place.path("data.new"), place.path("data")).unwrap();
    };
    for (folder, text) in [("v1", "sk-1"), ("v2", "sk-2")] {
        std::fs::create_dir(place.path(folder)).unwrap();
        place.write(&format!("{folder}/key"), text);
    }
    link("v1");
    std::os::unix::fs::symlink("data/key", place.path("key")).unwrap();
    assert_eq!(place.shown("key").0.as_deref(), Some("sk-1"));
    link("v2");
    assert!(place.sources.look());
    assert_eq!(place.shown("key").0.as_deref(), Some("sk-2"));
}

#[test]
fn a_file_that_vanishes_or_is_no_credential_keeps_the_last_one_and_says_so_once() {
    let place = Place::new();
    place.write("key", "sk-1");
    place.shown("key");
    for (broken, says) in [(None, "cannot be read"), (Some("\n"), "is empty"), (Some("a\nb"), "header")] {
        match broken {
            None => std::fs::remove_file(place.path("key")).unwrap(),
            Some(text) => place.replace("key", text),
        }
        assert!(place.sources.look(), "{says}: it is told");
        assert!(!place.sources.look(), "{says}: once");
        let (secret, fault) = place.shown("key");
        let fault = fault.unwrap();
        assert_eq!(secret.as_deref(), Some("sk-1"));
        assert!(fault.contains(says) && fault.contains("key") && !fault.contains("sk-1"), "{fault}");
    }
    place.replace("key", "sk-1");
    assert!(place.sources.look(), "that it is well again is told, too");
    assert_eq!(place.shown("key"), (Some("sk-1".to_owned()), None));
}

#[test]
fn what_was_never_there_is_missing_until_it_comes() {
    let place = Place::new();
    let (secret, fault) = place.shown("key");
    assert!(secret.is_none() && fault.unwrap().contains("cannot be read"));
    place.write("key", "sk-1");
    assert!(place.sources.look());
    assert_eq!(place.shown("key"), (Some("sk-1".to_owned()), None));
    let long = "x".repeat(100_000);
    place.write("key", &long);
    assert!(place.sources.look());
    assert!(place.shown("key").1.unwrap().contains("longer"));
}

#[test]
fn files_that_nothing_names_any_more_are_forgotten() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.write(name, "sk-1");
        place.shown(name);
    }
    let reference = place.reference("a");
    place.sources.retain([reference.as_str(), "env:X", "secret:y"].into_iter());
    place.replace("b", "sk-2");
    assert!(!place.sources.look());
    place.replace("a", "sk-2");
    assert!(place.sources.look());
}

#[test]
fn secrets_are_those_that_were_given_last_and_other_kinds_say_what_is_missing() {
    let sources = Sources::default();
    let fault = |reference: &str| sources.find(reference).fault.unwrap();
    assert!(fault("secret:a").contains("mutual TLS"));
    sources.give(Secrets::from([("a".to_owned(), Secret::parse("sk-1").unwrap())]));
    assert_eq!(sources.find("secret:a").secret.unwrap().expose(), "sk-1");
    sources.give(Secrets::new());
    assert!(fault("secret:a").contains("\"a\""));
    assert!(fault("env:SLUICE_TEST_NO_SUCH").contains("SLUICE_TEST_NO_SUCH"));
    assert!(fault("vault:x").contains("env:NAME, file:PATH and secret:NAME"));
}
