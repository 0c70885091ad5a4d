//! What operators do from the pages: under their role, once, and as the audit log tells it.

use super::*;
use crate::store::entry::{Ask, Entry};

async fn newest(browser: &Browser) -> Entry {
    let ask = Ask { before: u64::MAX, since_ms: 0, actor: String::new(), action: String::new(), limit: 1 };
    browser.fixture.plane.store.log(&ask).await.unwrap().remove(0).entry
}

/// A revision that waits for a node of its first stage, before somebody with this role.
async fn under_way(role: Role) -> (Browser, crate::nodes::Connection) {
    let fixture = Fixture::with_catalog().await;
    let node = fixture.connect("node-a", &[]);
    let dearer = crate::observed::fixture::CATALOG.replace("output = \"8.00\"", "output = \"9.00\"");
    revision::apply(&fixture.plane, Apply::of(dearer, Caller::bootstrap())).await.unwrap();
    (Browser::with_role(fixture, role).await, node)
}

async fn shown(browser: &Browser) -> String {
    let answer = browser.get("/admin/rollouts").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

#[tokio::test]
async fn an_operator_pauses_resumes_and_aborts_a_rollout_and_the_audit_log_has_each() {
    let (browser, _node) = under_way(Role::Operator).await;
    let html = shown(&browser).await;
    assert!(html.contains("<dd>running</dd>") && html.contains("<dd>revision 1</dd>"), "{html}");
    assert!(html.contains("<td class=\"fair\">not yet</td>") && !html.contains("Resume"), "{html}");
    for (path, fields, action, state, said) in [
        (
            "pause",
            &[("reason", " a <b> look ")][..],
            "rollout.pause",
            "paused",
            "paused by ann: a &lt;b&gt; look",
        ),
        ("resume", &[], "rollout.resume", "running", "Pause"),
        ("abort", &[("reason", "too dear")], "rollout.abort", "done", "<td class=\"bad\">aborted</td>"),
    ] {
        let answer = browser.post(&format!("/admin/rollouts/{path}"), fields).await;
        assert_eq!((answer.status, answer.location()), (303, "/admin/rollouts"), "{}", answer.body);
        let entry = newest(&browser).await;
        assert_eq!(
            (entry.action.as_str(), entry.actor.as_str(), entry.role.as_str()),
            (action, "ann", "operator")
        );
        assert!(entry.credential.starts_with("tok-"), "{entry:?}");
        let html = shown(&browser).await;
        assert!(state == "done" || html.contains(&format!("<dd>{state}</dd>")), "{html}");
        assert!(html.contains(said), "{said} is not in\n{html}");
    }
    assert_eq!(browser.fixture.plane.wanted().unwrap().revision(), 3, "the base again");
    let again = browser.post("/admin/rollouts/pause", &[]).await;
    assert_eq!(again.status, 404, "none is under way: {}", again.body);
}

#[tokio::test]
async fn a_viewer_sees_a_rollout_and_may_not_touch_it_and_nobody_may_from_elsewhere() {
    let (viewer, _node) = under_way(Role::Viewer).await;
    let html = shown(&viewer).await;
    assert!(html.contains("it needs the role operator") && !html.contains("/admin/rollouts/pause"), "{html}");
    let before = newest(&viewer).await;
    for path in ["pause", "resume", "abort"] {
        let answer = viewer.post(&format!("/admin/rollouts/{path}"), &[]).await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(
            answer.body.contains("this needs the role operator; ann has the role viewer"),
            "{}",
            answer.body
        );
        assert_eq!(viewer.get(&format!("/admin/rollouts/{path}")).await.status, 405, "{path}");
    }
    let (operator, _node) = under_way(Role::Operator).await;
    let own = [("form_token", operator.form_token.as_str())];
    for (origin, fields) in [("http://evil.example", &own[..]), ("null", &own), ("http://plane", &[])] {
        let answer = operator.post_from(origin, "/admin/rollouts/abort", fields).await;
        assert_eq!(answer.status, 403, "{origin} {fields:?}");
    }
    for browser in [viewer, operator] {
        assert!(shown(&browser).await.contains("<dd>running</dd>"), "nothing was done");
        assert_ne!(newest(&browser).await.action, "rollout.pause");
    }
    assert_eq!(before.action, "access.create");
}
