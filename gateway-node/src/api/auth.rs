//! Who calls: a key is looked up by its hash. Constant work whatever the key, as only hashes are compared.

use std::collections::HashMap;

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};

use common::code::Code;
use common::id::KeyId;
use common::pb::fleet as pb;

use super::Settings;
use crate::dialect::query;

/// Every key that may call.
#[derive(Debug, Default)]
pub struct Keys {
    is_known: bool,
    keys_exist: bool,
    /// By the hash of the key.
    ids: HashMap<[u8; 32], KeyId>,
}

impl Keys {
    /// Before the first list came: nobody can be told from anybody.
    pub fn none() -> Self {
        Keys::default()
    }

    /// Takes a list in, or says everything that is wrong with it.
    pub fn build(list: &pb::KeySet) -> Result<Self, Vec<pb::Violation>> {
        let mut violations = Vec::new();
        let mut ids = HashMap::with_capacity(list.keys.len());
        for (index, key) in list.keys.iter().enumerate() {
            match <[u8; 32]>::try_from(key.sha256.as_slice()) {
                Ok(hash) => drop(ids.insert(hash, KeyId::from(key.id.as_str()))),
                Err(_) => violations.push(pb::Violation {
                    path: format!("keys[{index}].sha256"),
                    message: format!("{} bytes; a sha256 has 32", key.sha256.len()),
                }),
            }
        }
        if violations.is_empty() {
            Ok(Keys { is_known: true, keys_exist: list.keys_exist, ids })
        } else {
            Err(violations)
        }
    }

    /// Which key calls, an empty one where none is asked for; else the code of the refusal. `query` is looked at where an API takes keys there.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        settings: Settings,
    ) -> Result<KeyId, Code> {
        if !self.is_known {
            return Err(Code::NoConfig);
        }
        if !self.keys_exist && settings.allow_anonymous {
            return Ok(KeyId::from(""));
        }
        let in_query = query::value(query, "key");
        let in_query = in_query.as_deref().map(str::as_bytes);
        let key = shown(headers, in_query).ok_or(Code::InvalidApiKey)?;
        let hash: [u8; 32] = Sha256::digest(key).into();
        self.ids.get(&hash).cloned().ok_or(Code::InvalidApiKey)
    }
}

/// The key that a caller shows, as the SDKs of OpenAI, Anthropic, Google and Azure do; else the one in its query.
fn shown<'a>(headers: &'a HeaderMap, in_query: Option<&'a [u8]>) -> Option<&'a [u8]> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().as_bytes());
    }
    let names = ["x-api-key", "x-goog-api-key", "api-key"];
    names.iter().find_map(|name| headers.get(*name)).map(|value| value.as_bytes()).or(in_query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys_exist: bool, keys: &[&str]) -> Keys {
        let keys = keys
            .iter()
            .map(|key| pb::ClientKey { id: "k".into(), sha256: Sha256::digest(key).to_vec() })
            .collect();
        Keys::build(&pb::KeySet { version: 1, keys_exist, keys }).unwrap()
    }

    fn with(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn a_key_is_taken_as_both_sdks_show_it_and_no_other_is() {
        let keys = keys(true, &["sk-one"]);
        let settings = Settings { allow_anonymous: true };
        let table = [
            (with("authorization", "Bearer sk-one"), Ok("k".into())),
            (with("authorization", "bearer sk-one"), Ok("k".into())),
            (with("x-api-key", "sk-one"), Ok("k".into())),
            (with("authorization", "Bearer sk-two"), Err(Code::InvalidApiKey)),
            (with("authorization", "Basic sk-one"), Err(Code::InvalidApiKey)),
            (with("authorization", "sk-one"), Err(Code::InvalidApiKey)),
            (HeaderMap::new(), Err(Code::InvalidApiKey)),
        ];
        for (headers, expected) in table {
            assert_eq!(keys.check(&headers, None, settings), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_key_in_the_query_counts_where_no_header_shows_one() {
        let keys = keys(true, &["sk-one"]);
        for (headers, query, is_let_in) in [
            (HeaderMap::new(), "alt=sse&key=sk-one", true),
            (HeaderMap::new(), "key=sk%2Done", true),
            (HeaderMap::new(), "key=sk-two", false),
            (HeaderMap::new(), "keys=sk-one", false),
            (with("x-goog-api-key", "sk-two"), "key=sk-one", false),
            (with("x-goog-api-key", "sk-one"), "key=sk-two", true),
        ] {
            let checked = keys.check(&headers, Some(query), Settings::default());
            assert_eq!(checked.is_ok(), is_let_in, "{headers:?} {query}");
        }
    }

    #[test]
    fn without_any_key_in_existence_only_allow_anonymous_serves() {
        let none = keys(false, &[]);
        assert_eq!(none.check(&HeaderMap::new(), None, Settings { allow_anonymous: true }), Ok("".into()));
        assert_eq!(none.check(&HeaderMap::new(), None, Settings::default()), Err(Code::InvalidApiKey));
        let all_revoked = keys(true, &[]);
        let anonymous = Settings { allow_anonymous: true };
        assert_eq!(all_revoked.check(&HeaderMap::new(), None, anonymous), Err(Code::InvalidApiKey));
    }

    #[test]
    fn before_the_first_list_a_caller_is_told_no_config_and_never_that_its_key_is_wrong() {
        let headers = with("authorization", "Bearer sk-one");
        assert_eq!(
            Keys::none().check(&headers, None, Settings { allow_anonymous: true }),
            Err(Code::NoConfig)
        );
    }

    #[test]
    fn a_hash_of_another_length_is_a_violation() {
        let list = pb::KeySet {
            version: 1,
            keys_exist: true,
            keys: vec![pb::ClientKey { id: "k".into(), sha256: vec![1, 2] }],
        };
        assert_eq!(Keys::build(&list).unwrap_err()[0].path, "keys[0].sha256");
    }
}
