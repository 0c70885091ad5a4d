//! The table of profiles, and the rules of errors.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn profiles_are_sorted_and_every_name_is_its_own() {
    let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let sorted: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names, sorted.into_iter().collect::<Vec<_>>());
    for name in names {
        assert_eq!(Profile::find(name).unwrap().name, name);
    }
    assert_eq!(Profile::find("PLAIN"), None);
}

#[test]
fn no_profile_contradicts_itself() {
    for profile in PROFILES {
        let name = profile.name;
        let speaks = |dialect| profile.speaks.is_empty() || profile.speaks.contains(dialect);
        assert!(profile.paths.iter().all(|(dialect, _)| speaks(dialect)), "{name}");
        assert!(profile.paths.iter().all(|(_, path)| path.contains("{operation}")), "{name}");
        assert!(!profile.appended.iter().any(|end| profile.base_url.ends_with(end)), "{name}");
        assert!(profile.overrides.iter().all(|rule| Override::CLASSES.contains(&rule.class)), "{name}");
        for (i, rule) in profile.overrides.iter().enumerate() {
            assert!(!profile.overrides[..i].iter().any(|earlier| earlier.covers(rule)), "{name}: {rule}");
        }
    }
}

fn rule(status: Option<u16>, code: Option<&'static str>, message: Option<&'static str>) -> Override {
    let class = FailureClass::Credential;
    Override { status, code: code.map(Cow::Borrowed), message: message.map(Cow::Borrowed), class }
}

#[test]
fn a_rule_matches_what_has_all_that_it_gives() {
    let names = ["AppIdNoAuthError", "11200"];
    let message = "App-ID ist ungültig";
    for (given, expected) in [
        (rule(Some(400), None, None), true),
        (rule(Some(401), None, None), false),
        (rule(None, Some("appidnoautherror"), None), true),
        (rule(None, Some("11200"), None), true),
        (rule(None, Some("1120"), None), false),
        (rule(None, None, Some("app-id IST UNGÜLTIG")), true),
        (rule(None, None, Some("11200")), false),
        (rule(Some(400), Some("11200"), Some("app")), true),
        (rule(Some(400), Some("11200"), Some("key")), false),
        (rule(Some(429), Some("11200"), Some("app")), false),
    ] {
        assert_eq!(given.matches(Some(400), names, message), expected, "{given}");
    }
    assert!(!rule(Some(400), None, None).matches(None, names, message));
}

#[test]
fn what_a_caller_wrote_never_takes_a_channel_out() {
    let echo = "invalid value \"no credit\": no credit";
    let said =
        |class, message| Override { class, ..rule(None, None, Some("no credit")) }.matches(None, [], message);
    for class in Override::CLASSES {
        let takes_out =
            matches!(class, FailureClass::Credential | FailureClass::Balance | FailureClass::Misconfigured);
        assert_eq!(said(class, echo), !takes_out, "{class}");
        assert!(said(class, "No credit: \"x\""), "{class}");
    }
    assert!(!rule(None, None, Some("a: b")).can_match() && rule(None, None, Some("don't b")).can_match());
    let overloaded = Override { class: FailureClass::Overloaded, ..rule(None, None, Some("credit")) };
    let suspends = rule(None, None, Some("credit"));
    assert!(!suspends.covers(&overloaded) && overloaded.covers(&suspends) && suspends.covers(&suspends));
}

#[test]
fn a_rule_covers_what_is_narrower() {
    let (all, one) =
        (rule(Some(429), None, None), rule(Some(429), Some("insufficient_quota"), Some("quota exceeded")));
    assert!(all.covers(&one) && !one.covers(&all) && one.covers(&one));
    assert!(rule(None, Some("INSUFFICIENT_QUOTA"), None).covers(&one));
    assert!(rule(None, None, Some("Quota")).covers(&one));
    assert!(!rule(None, None, Some("exceeds")).covers(&one));
    assert!(!rule(Some(429), None, None).covers(&rule(None, Some("insufficient_quota"), None)));
}

#[test]
fn ways_and_rules_are_said_in_words() {
    for (name, auth) in Auth::NAMED {
        assert_eq!(auth.to_string(), name);
    }
    let header = |prefix| Auth::Header { name: "x-key".into(), prefix };
    assert_eq!(header("".into()).to_string(), "header \"x-key\"");
    assert_eq!(header("Token ".into()).to_string(), "header \"x-key\", prefix \"Token \"");
    assert_eq!(Auth::Query { name: "key".into() }.to_string(), "query \"key\"");
    let said = "status 400, code \"x\", message \"y\", class credential";
    assert_eq!(rule(Some(400), Some("x"), Some("y")).to_string(), said);
}

fn rules() -> impl Strategy<Value = Override> {
    let text = |pattern: &'static str| prop::option::of(pattern.prop_map(Cow::Owned));
    let class = prop::sample::select(vec![FailureClass::Balance, FailureClass::Overloaded]);
    (prop::option::of(400..402u16), text("[ab]{1,2}"), text("[abB:]{1,3}"), class)
        .prop_map(|(status, code, message, class)| Override { status, code, message, class })
}

proptest! {
    #[test]
    fn a_rule_behind_one_that_covers_it_is_never_the_first_that_matches(
        first in rules(), second in rules(), status in prop::option::of(400..402u16), name in "[ab]{1,2}",
        message in "[aAbB:\"]{0,6}",
    ) {
        let matches = |rule: &Override| rule.matches(status, [name.as_str()], &message);
        prop_assert!(!first.covers(&second) || !matches(&second) || matches(&first), "{first} before {second}");
        prop_assert!(first.covers(&first));
    }
}
