//! A channel together with its profile: what the document says of it wins, key by key. Pure.

use std::collections::BTreeMap;

use super::Channel;
use crate::dialect::Dialect;
use crate::profile::{Auth, Limits, Override};

/// A template that changes nothing.
const OWN_PATH: &str = "{operation}";

impl Channel {
    /// How the credential is shown; none where each dialect has its own way.
    pub fn auth(&self) -> Option<&Auth> {
        self.auth.as_ref().or_else(|| self.profile?.auth.as_ref())
    }

    /// Where the operations of a dialect lie; none where they have the dialect's own paths.
    pub fn path(&self, dialect: Dialect) -> Option<&str> {
        let given = self.paths.get(&dialect).map(String::as_str);
        given.or_else(|| self.profile?.path(dialect)).filter(|path| *path != OWN_PATH)
    }

    /// What each request's address ends in.
    pub fn query(&self) -> BTreeMap<String, String> {
        let own = self.profile.map(|profile| profile.query).unwrap_or_default();
        let mut query: BTreeMap<_, _> =
            own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        query.extend(self.query.clone());
        query
    }

    /// What its errors mean, in the order in which they are asked.
    pub fn overrides(&self) -> impl Iterator<Item = &Override> {
        self.overrides.iter().chain(self.profile.map(|profile| profile.overrides).unwrap_or_default())
    }

    /// What its rate limits are about.
    pub fn limits(&self) -> Limits {
        self.limits.or_else(|| self.profile.map(|profile| profile.limits)).unwrap_or_default()
    }
}
