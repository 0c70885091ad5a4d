//! What a snapshot says of the ways of an upstream: how the credential is shown, where operations lie, what errors
//! mean. What this node does not know is a violation, never a default.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use common::class::FailureClass;
use common::dialect::Dialect;
use common::pb::fleet as pb;
use common::profile::{Limits, Override};

use crate::table::path::Template;
use crate::upstream::credential::Place;

/// How a channel shows its credential.
pub(super) fn place(auth: Option<&pb::Auth>) -> Result<Place, String> {
    let Some(auth) = auth else { return Ok(Place::ByDialect) };
    match pb::AuthPlace::try_from(auth.place) {
        Ok(pb::AuthPlace::None) => Ok(Place::Nowhere),
        Ok(pb::AuthPlace::Header) => {
            let name = HeaderName::try_from(&auth.name).map_err(|_| "no name of a header")?;
            HeaderValue::from_str(&auth.prefix).map_err(|_| "a prefix that a header cannot carry")?;
            Ok(Place::Header { name, prefix: auth.prefix.clone() })
        }
        Ok(pb::AuthPlace::Query) if !auth.name.is_empty() => Ok(Place::Query { name: auth.name.clone() }),
        Ok(pb::AuthPlace::Query) => Err("a parameter without a name".to_owned()),
        Ok(pb::AuthPlace::Unspecified) | Err(_) => Err(format!("place {} is not known here", auth.place)),
    }
}

/// Where the operations of some dialects lie.
pub(super) fn paths(paths: &[pb::Path]) -> Result<BTreeMap<Dialect, Arc<Template>>, String> {
    let mut templates = BTreeMap::new();
    for path in paths {
        let dialect: Dialect =
            path.dialect.parse().map_err(|unknown: common::dialect::UnknownDialect| unknown.to_string())?;
        let template =
            Template::parse(&path.template).map_err(|fault| format!("{:?}: {fault}", path.template))?;
        if templates.insert(dialect, Arc::new(template)).is_some() {
            return Err(format!("{dialect} stands twice"));
        }
    }
    Ok(templates)
}

/// What errors mean.
pub(super) fn overrides(rules: &[pb::Override]) -> Result<Vec<Override>, String> {
    let some = |text: &str| (!text.is_empty()).then(|| Cow::Owned(text.to_owned()));
    rules
        .iter()
        .map(|rule| {
            let class: FailureClass =
                rule.class.parse().map_err(|unknown: common::class::UnknownClass| unknown.to_string())?;
            if !Override::CLASSES.contains(&class) {
                return Err(format!("{class} is no class for what an upstream says"));
            }
            let status = u16::try_from(rule.status).map_err(|_| format!("no status {}", rule.status))?;
            let rule = Override {
                status: (status > 0).then_some(status),
                code: some(&rule.code),
                message: some(&rule.message),
                class,
            };
            if rule.status.is_none() && rule.code.is_none() && rule.message.is_none() {
                return Err("a rule that matches every error".to_owned());
            }
            Ok(rule)
        })
        .collect()
}

/// What a rate limit is about. Snapshots of before say nothing of it.
pub(super) fn limits(limits: i32) -> Result<Limits, String> {
    match pb::Limits::try_from(limits) {
        Ok(pb::Limits::Unspecified | pb::Limits::Route) => Ok(Limits::Route),
        Ok(pb::Limits::Channel) => Ok(Limits::Channel),
        Err(_) => Err(format!("{limits} is not known here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(place: i32, name: &str, prefix: &str) -> pb::Auth {
        pb::Auth { place, name: name.into(), prefix: prefix.into() }
    }

    #[test]
    fn a_way_to_show_a_credential_that_is_not_known_is_never_taken_for_another() {
        assert_eq!(place(None), Ok(Place::ByDialect));
        assert_eq!(place(Some(&auth(1, "", ""))), Ok(Place::Nowhere));
        let header = Place::Header { name: HeaderName::from_static("x-key"), prefix: "Token ".into() };
        assert_eq!(place(Some(&auth(2, "X-Key", "Token "))), Ok(header));
        assert_eq!(place(Some(&auth(3, "key", ""))), Ok(Place::Query { name: "key".into() }));
        for (faulty, part) in [
            (auth(0, "x", ""), "place 0"),
            (auth(4, "x", ""), "place 4"),
            (auth(2, "", ""), "name of a header"),
            (auth(2, "a b", ""), "name of a header"),
            (auth(2, "x", "a\n"), "prefix"),
            (auth(3, "", ""), "without a name"),
        ] {
            let refused = place(Some(&faulty)).unwrap_err();
            assert!(refused.contains(part), "{faulty:?}: {refused}");
        }
    }

    #[test]
    fn paths_are_of_known_dialects_each_once_and_are_paths() {
        let path =
            |dialect: &str, template: &str| pb::Path { dialect: dialect.into(), template: template.into() };
        assert_eq!(paths(&[path("gemini", "/x{operation}")]).unwrap().len(), 1);
        for (faulty, part) in [
            (vec![path("gemni", "/x")], "gemni"),
            (vec![path("gemini", "x")], "no path"),
            (vec![path("gemini", "/x{model}{y}")], "stand for"),
            (vec![path("gemini", "/x"), path("gemini", "/y")], "twice"),
        ] {
            let refused = paths(&faulty).unwrap_err();
            assert!(refused.contains(part), "{faulty:?}: {refused}");
        }
    }

    #[test]
    fn rules_and_limits_that_are_not_known_are_refused() {
        let rule = |status, code: &str, class: &str| pb::Override {
            status,
            code: code.into(),
            message: String::new(),
            class: class.into(),
        };
        let read = overrides(&[rule(429, "", "balance"), rule(0, "x", "timeout")]).unwrap();
        assert_eq!((read[0].status, read[0].code.as_deref()), (Some(429), None));
        assert_eq!((read[1].status, read[1].code.as_deref()), (None, Some("x")));
        for (faulty, part) in [
            (rule(429, "", "blance"), "blance"),
            (rule(429, "", "canceled"), "no class"),
            (rule(0, "", "balance"), "every error"),
            (rule(70_000, "", "balance"), "70000"),
        ] {
            let refused = overrides(&[faulty]).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(
            (limits(0), limits(1), limits(2)),
            (Ok(Limits::Route), Ok(Limits::Route), Ok(Limits::Channel))
        );
        assert!(limits(3).is_err());
    }
}
