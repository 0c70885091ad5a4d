//! A few members of a JSON object, as they stand there, without a tree of the rest: for documents that may be
//! megabytes long. The rest is checked to be JSON all the same.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The raw values of the named members; of a repeated member the last one, as parsers have it.
pub fn object<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> serde_json::Result<[Option<&'a str>; N]> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let found = deserializer.deserialize_map(Members { names })?;
    deserializer.end()?;
    Ok(found)
}

/// Whether a member is missing or `null`.
pub fn is_null(raw: Option<&str>) -> bool {
    raw.is_none_or(|raw| raw == "null")
}

/// Whether it is an array with something in it.
pub fn is_filled_array(raw: &str) -> bool {
    raw.strip_prefix('[').is_some_and(|rest| !rest.trim_start().starts_with(']'))
}

struct Members<'n, const N: usize> {
    names: [&'n str; N],
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(which) = map.next_key_seed(Which(&self.names))? {
            match which.and_then(|which| found.get_mut(which)) {
                Some(place) => *place = Some(map.next_value::<&'de RawValue>()?.get()),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// Which of the names a member has. As bytes: a name that is no text is nobody's fault here.
struct Which<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Which<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Which<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|own| own.as_bytes() == name))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        self.visit_bytes(name.as_bytes())
    }
}
