//! Tokens over a store: how they begin, count and end.

use super::*;
use crate::access::known::Found;
use crate::observed::fixture::{Fixture, NOW_MS};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn new(name: &str, role: Role) -> New<'_> {
    New { name, role, ttl: Some(DAY) }
}

async fn find(fixture: &Fixture, secret: &str) -> Found {
    let plane = &fixture.plane;
    plane.access.find(&plane.store, secret.as_bytes(), plane.clock.now_ms()).await.unwrap()
}

#[tokio::test]
async fn a_token_counts_until_its_end_or_until_it_is_revoked() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let made = create(plane, &Caller::bootstrap(), new("ci", Role::Operator)).await.unwrap();
    let Found::Valid(caller) = find(&fixture, &made.secret).await else { panic!() };
    assert_eq!((caller.name.as_str(), caller.role), ("ci", Role::Operator));
    assert_eq!(caller.credential, made.token.id);
    assert_eq!(find(&fixture, "sla-other").await, Found::Unknown);
    plane.clock.set_ms(NOW_MS + DAY.as_millis() as u64 - 1);
    assert!(matches!(find(&fixture, &made.secret).await, Found::Valid(_)));
    assert!(!plane.access.is_revoked(&made.token.id));
    plane.clock.set_ms(NOW_MS + DAY.as_millis() as u64);
    assert_eq!(find(&fixture, &made.secret).await, Found::Expired("ci".to_owned()));
    plane.clock.set_ms(NOW_MS);
    revoke(plane, &Caller::bootstrap(), &made.token.id).await.unwrap();
    assert_eq!(find(&fixture, &made.secret).await, Found::Revoked("ci".to_owned()));
    assert!(plane.access.is_revoked(&made.token.id));
    let again = revoke(plane, &Caller::bootstrap(), &made.token.id).await.unwrap();
    assert_eq!(again.revoked_at_ms, Some(NOW_MS));
    assert!(matches!(revoke(plane, &Caller::bootstrap(), "tok-0").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn what_another_control_plane_makes_and_revokes_is_seen_by_the_next_look() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let made = create(plane, &Caller::bootstrap(), new("ci", Role::Viewer)).await.unwrap();
    // Another process over the same database, which has read nothing yet.
    let other = crate::access::known::Known::default();
    let found = other.find(&plane.store, made.secret.as_bytes(), NOW_MS).await.unwrap();
    assert!(matches!(found, Found::Valid(_)), "one that it does not know is looked for: {found:?}");
    revoke(plane, &Caller::bootstrap(), &made.token.id).await.unwrap();
    other.refresh(&plane.store).await.unwrap();
    let found = other.find(&plane.store, made.secret.as_bytes(), NOW_MS).await.unwrap();
    assert_eq!(found, Found::Revoked("ci".to_owned()));
}

#[tokio::test]
async fn while_the_database_is_away_those_who_are_known_stay_so_and_others_are_not_called_unknown() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let made = create(plane, &Caller::bootstrap(), new("ci", Role::Viewer)).await.unwrap();
    plane.store.close().await;
    assert!(matches!(find(&fixture, &made.secret).await, Found::Valid(_)));
    let other = plane.access.find(&plane.store, b"sla-other", NOW_MS).await;
    assert!(matches!(other, Err(Error::Store(_))), "{other:?}");
}

#[tokio::test]
async fn nobody_gives_more_than_there_is_and_names_are_ones_that_can_be_told_apart() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let operator = Caller { role: Role::Operator, ..Caller::bootstrap() };
    let more = create(plane, &operator, new("x", Role::Admin)).await;
    assert!(matches!(more, Err(Error::Denied(_))));
    assert!(create(plane, &operator, new("x", Role::Operator)).await.is_ok());
    for name in ["", " ", "admin", "Sluice", "a\nb", "a\0b", &"x".repeat(101)] {
        let refused = create(plane, &Caller::bootstrap(), new(name, Role::Viewer)).await;
        assert!(matches!(refused, Err(Error::Argument { field: "name", .. })), "{name:?}");
    }
    for ttl in [Duration::ZERO, 3661 * DAY] {
        let ask = New { ttl: Some(ttl), ..new("x", Role::Viewer) };
        let refused = create(plane, &Caller::bootstrap(), ask).await;
        assert!(matches!(refused, Err(Error::Argument { field: "ttl_seconds", .. })), "{ttl:?}");
    }
    let endless =
        create(plane, &Caller::bootstrap(), New { ttl: None, ..new("x", Role::Viewer) }).await.unwrap();
    assert_eq!(endless.token.expires_at_ms, None);
}

#[tokio::test]
async fn a_use_is_noted_about_once_a_minute() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let made = create(plane, &Caller::bootstrap(), new("ci", Role::Viewer)).await.unwrap();
    let id = made.token.id.clone();
    assert_eq!(plane.access.take_uses(NOW_MS), []);
    find(&fixture, &made.secret).await;
    let uses = plane.access.take_uses(NOW_MS);
    assert_eq!(uses, [(id.clone(), NOW_MS)]);
    plane.store.admin_tokens_used(&uses).await.unwrap();
    plane.clock.set_ms(NOW_MS + 1000);
    find(&fixture, &made.secret).await;
    assert_eq!(plane.access.take_uses(NOW_MS + 1000), []);
    assert_eq!(plane.access.take_uses(NOW_MS + 60_000), [(id.clone(), NOW_MS + 1000)]);
    plane.store.admin_tokens_used(&[(id, NOW_MS - 1)]).await.unwrap();
    assert_eq!(list(plane).await.unwrap()[0].last_used_at_ms, Some(NOW_MS), "never back");
}

#[tokio::test]
async fn the_log_says_who_gave_what_and_not_the_token() {
    let fixture = Fixture::unread().await;
    let plane = &fixture.plane;
    let made = create(plane, &Caller::bootstrap(), new("ci", Role::Viewer)).await.unwrap();
    revoke(plane, &Caller::bootstrap(), &made.token.id).await.unwrap();
    let log = plane.store.walk_log(0, u64::MAX, 10).await.unwrap();
    let actions: Vec<_> = log.iter().map(|kept| kept.entry.action.as_str()).collect();
    assert_eq!(actions, ["access.create", "access.revoke"]);
    assert!(log[0].entry.after.as_ref().unwrap().contains("\"role\":\"viewer\""));
    let kept = format!("{log:?}{:?}", list(plane).await.unwrap());
    assert!(!kept.contains(&made.secret), "{kept}");
}
