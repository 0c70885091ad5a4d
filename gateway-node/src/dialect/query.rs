//! What a caller says behind the question mark: which of it goes up, and where a key may stand in it. The rest
//! stays here: a query is logged by everything that it passes. Pure.

use std::borrow::Cow;

/// The parts that are named, as the caller wrote them; `None` where nothing of it goes up.
pub fn upward(query: Option<&str>, names: &[&str]) -> Option<String> {
    let kept: Vec<&str> = pairs(query).filter(|pair| names.contains(&name(pair).as_ref())).collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

/// The value of the first parameter of this name, decoded.
pub fn value<'a>(query: Option<&'a str>, wanted: &str) -> Option<Cow<'a, str>> {
    values(query, &[wanted]).next()
}

/// The values of all parameters of these names, decoded.
pub fn values<'a>(query: Option<&'a str>, wanted: &[&str]) -> impl Iterator<Item = Cow<'a, str>> {
    pairs(query)
        .filter(|pair| wanted.contains(&name(pair).as_ref()))
        .map(|pair| super::percent::decoded(pair.split_once('=').map_or("", |(_, value)| value)))
}

fn pairs(query: Option<&str>) -> impl Iterator<Item = &str> {
    query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty())
}

fn name(pair: &str) -> Cow<'_, str> {
    super::percent::decoded(pair.split_once('=').map_or(pair, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_goes_up_and_a_key_never_does() {
        let names = ["alt", "$alt"];
        for (query, up) in [
            (None, None),
            (Some(""), None),
            (Some("key=sk-caller"), None),
            (Some("k%65y=sk-caller&foo"), None),
            (Some("alt=sse&key=sk-caller"), Some("alt=sse")),
            (Some("key=a&%24alt=sse&&alt=json"), Some("%24alt=sse&alt=json")),
        ] {
            assert_eq!(upward(query, &names).as_deref(), up, "{query:?}");
        }
    }

    #[test]
    fn a_value_is_decoded() {
        assert_eq!(value(Some("a=1&key=sk%2Dx&key=2"), "key").as_deref(), Some("sk-x"));
        assert_eq!(value(Some("key"), "key").as_deref(), Some(""));
        assert_eq!(values(Some("a=1&%24a=2&b=3&a"), &["a", "$a"]).collect::<Vec<_>>(), ["1", "2", ""]);
        assert_eq!((value(Some("keys=1"), "key"), value(None, "key")), (None, None));
    }
}
