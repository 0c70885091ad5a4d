//! What stands on each page.

use super::*;
use crate::nodes::{Facts, Pause};
use crate::observed::fixture::suspended;

async fn shows(browser: &Browser, path: &str, all: &[&str]) {
    let answer = browser.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    for shown in all {
        assert!(answer.body.contains(shown), "{shown} is not in {path}:\n{}", answer.body);
    }
}

#[tokio::test]
async fn a_model_shows_its_chain_with_costs_and_who_would_serve_it_on_which_node() {
    let fixture = two_revisions("").await;
    let part = |number: u64| {
        let wanted = fixture.plane.wanted().unwrap();
        let content = wanted.target.catalog.as_ref().unwrap().part;
        crate::revision::encoded::Part { version: number, ..content }
    };
    let running = |number| {
        let applied = crate::nodes::Applied { catalog: Some(part(number)), ..Default::default() };
        Facts { applied, ..Facts::default() }
    };
    let pause = suspended("direct");
    let open = Facts { open_channels: vec!["reseller".to_owned()], ..running(2) };
    let out = Facts { pauses: vec![pause], ..open.clone() };
    let nodes = &fixture.plane.nodes;
    let _connected = [
        nodes.connect("node-a", running(2)),
        nodes.connect("node-b", running(1)),
        nodes.connect("node-c", open),
        nodes.connect("node-d", out),
    ];
    let browser = Browser::with_role(fixture, Role::Viewer).await;
    let row = |cells: &[&str]| {
        let of = |cell: &&str| format!("<td>{cell}</td>\n");
        cells.iter().map(of).collect::<String>()
    };
    let table = [
        &row(&["2.00", "9.00", "3.75"]),
        &row(&["2.50", "10.00", "4.375"]),
        "<th scope=\"row\">node-a</th>\n<td>2</td>\n<td class=\"well\">reseller</td>\n<td>direct</td>\n<td>nothing is out</td>",
        "<th scope=\"row\">node-b</th>\n<td>1</td>\n<td class=\"well\">reseller</td>",
        "<th scope=\"row\">node-c</th>\n<td>2</td>\n<td class=\"well\">direct</td>\n<td>–</td>\n<td>reseller is out: its breaker is open</td>",
        "nobody: callers get no_available_channel</td>\n<td>–</td>\n<td>reseller is out: its breaker is open; direct is out: suspended \
         (balance) since 2026-11-30 13:43:39 UTC, next try at 2026-11-30 13:45:39 UTC</td>",
    ];
    shows(&browser, "/admin/models/gpt-4o", &table).await;
    let all =
        ["<a href=\"/admin/models/gpt-4o\">gpt-4o</a>", "reseller → direct", "reseller on node-c, node-d"];
    shows(&browser, "/admin/models", &all).await;
    let absent = browser.get("/admin/models/gpt-40").await;
    assert_eq!(absent.status, 404);
    assert!(absent.body.contains("did you mean &quot;gpt-4o&quot;?"), "{}", absent.body);
}

#[tokio::test]
async fn the_history_leads_to_each_document_and_to_what_changed() {
    let browser = Browser::with_role(two_revisions("dearer").await, Role::Viewer).await;
    let listed = [
        "<a href=\"/admin/catalog/2\">2</a>",
        "2026-11-30 13:44:39 UTC",
        "<td>admin</td>",
        "dearer",
        "since 1",
    ];
    shows(&browser, "/admin/catalog", &listed).await;
    shows(&browser, "/admin/catalog?before=2", &["<a href=\"/admin/catalog/1\">1</a>", "the first"]).await;
    assert!(!browser.get("/admin/catalog?before=2").await.body.contains("dearer"));
    let document = ["Revision 2", "dearer", "credential = &quot;env:KEY&quot;", "output = &quot;9.00&quot;"];
    shows(&browser, "/admin/catalog/2", &document).await;
    let changed = [
        "models.gpt-4o.routes[reseller].cost.output",
        "<td class=\"before\">8.00</td>\n<td class=\"after\">9.00</td>",
        "/admin/catalog/diff?from=2&amp;to=1",
    ];
    shows(&browser, "/admin/catalog/diff?from=1&to=2", &changed).await;
    shows(&browser, "/admin/catalog/diff?from=2&to=2", &["Both mean the same."]).await;
    for (path, status) in [
        ("/admin/catalog/9", 404),
        ("/admin/catalog/x", 404),
        ("/admin/catalog/diff?from=1&to=9", 404),
        ("/admin/catalog/diff?from=1", 400),
        ("/admin/catalog?before=x", 400),
    ] {
        assert_eq!(browser.get(path).await.status, status, "{path}");
    }
    let empty = Fixture::unread().await;
    empty.plane.head.refresh(&empty.plane.store).await.unwrap();
    let browser = Browser::admin(empty).await;
    shows(&browser, "/admin/catalog", &["No revision was applied yet."]).await;
    shows(&browser, "/admin/models", &["The catalog has no models yet."]).await;
}

#[tokio::test]
async fn requests_are_found_drawn_and_decided_again() {
    let browser = Browser::with_role(two_revisions("theirs").await, Role::Viewer).await;
    let place = format!("/admin/requests/{ID}");
    let row = format!("<a href=\"{place}\">{ID}</a>");
    let failed = "<th scope=\"row\">reseller</th>\n<td>overloaded</td>\n<td>1</td>\n<td>1</td>";
    shows(&browser, "/admin/requests", &[&row, "4.000 s", "<td class=\"well\">served</td>", failed]).await;
    for found in
        ["since=2m&model=gpt-4o", "class=overloaded&channel=reseller", "min_hops=2&slower_than=4s", "since="]
    {
        shows(&browser, &format!("/admin/requests?{found}"), &[&row]).await;
    }
    for other in
        ["model=other", "since=30s", "status=503", "min_hops=3", "slower_than=5s", "key=key-2", "node=b"]
    {
        let page = browser.get(&format!("/admin/requests?{other}")).await.body;
        assert!(page.contains("There are no such requests.") && !page.contains(&row), "{other}");
    }
    for wrong in ["since=5", "status=x", "slower_than=-1s"] {
        assert_eq!(browser.get(&format!("/admin/requests?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(browser.get("/admin/requests?id=a%2Fb").await.location(), "/admin/requests/a%2Fb");
    let shown = [
        "It asked /v1/chat/completions for gpt-4o, with key key-1; revision 1.",
        "served, status 200 after 4.000 s; the answer began after 3.100 s.",
        "overloaded, status 503",
        "ok, status 200, gate: content; the upstream calls it up-theirs",
        "<rect class=\"waits\" x=\"500\" y=\"14\" width=\"250\" height=\"6\">",
        "direct: waits for headers from 2.000 s to 3.000 s, is held from 3.000 s to 3.100 s, is passed on from 3.100 s to 4.000 s",
        "The same is decided again, over the chain of revision 1.",
        "Decided again: the caller got its answer.",
    ];
    shows(&browser, &place, &shown).await;
    shows(&browser, "/admin/requests/theirs", &shown).await;
    let over =
        ["Something else is decided, over the chain of revision 2.", "As it was: the caller got its answer."];
    shows(&browser, &format!("{place}?revision=2"), &over).await;
    shows(&browser, &format!("{place}?revision=9"), &["It cannot be decided again: no such revision: 9."])
        .await;
    assert_eq!(browser.get("/admin/requests/unknown").await.status, 404);
    assert_eq!(browser.get(&format!("{place}?revision=x")).await.status, 400);
}

#[tokio::test]
async fn nodes_tell_what_they_run_and_what_is_out_there_and_keys_whose_they_are() {
    let fixture = two_revisions("").await;
    let pause = Pause {
        channel: "direct".to_owned(),
        model: "gpt-4o".to_owned(),
        what: "cooling down".to_owned(),
        class: "rate_limited".to_owned(),
        since_ms: 0,
        until_ms: NOW_MS + 5000,
    };
    let finding = crate::nodes::Finding { path: "tls".to_owned(), message: "ends soon".to_owned() };
    let facts = Facts {
        open_channels: vec!["reseller".to_owned()],
        pauses: vec![pause],
        warnings: vec![finding],
        labels: [("zone".to_owned(), "eu".to_owned())].into(),
        version: "1.2.3".to_owned(),
        in_flight: 7,
        ..Facts::default()
    };
    let _node = fixture.plane.nodes.connect("node-a", facts);
    let key = crate::keys::create(&fixture.plane, &Caller::bootstrap(), "shop <b>").await.unwrap();
    let gone = crate::keys::create(&fixture.plane, &Caller::bootstrap(), "old").await.unwrap();
    crate::keys::revoke(&fixture.plane, &Caller::bootstrap(), &gone.key.id).await.unwrap();
    let browser = Browser::with_role(fixture, Role::Viewer).await;
    let row = "<td class=\"fair\">behind</td>\n<td>none</td>\n<td>2</td>\n<td>reseller</td>\n<td>7</td>\n<td>1.2.3</td>";
    shows(&browser, "/admin/nodes", &["<a href=\"/admin/nodes/node-a\">node-a</a>", row]).await;
    let one = [
        "zone=eu",
        "<li>tls: ends soon</li>",
        "<li>reseller: its breaker is open</li>",
        "<li>direct for gpt-4o: cooling down (rate_limited) until 2026-11-30 13:44:44 UTC</li>",
        "Nothing keeps it from that.",
    ];
    shows(&browser, "/admin/nodes/node-a", &one).await;
    assert_eq!(browser.get("/admin/nodes/node-b").await.status, 404);
    let id = &key.key.id;
    let row = format!("<th scope=\"row\">{id}</th>\n<td>shop &lt;b&gt;</td>");
    let keys =
        ["<td class=\"well\">valid</td>", "revoked 2026-11-30", &format!("/admin/requests?key={id}"), &row];
    shows(&browser, "/admin/keys", &keys).await;
    let page = browser.get("/admin/keys").await.body;
    assert!(!page.contains(&key.secret) && !page.contains("sk-"), "{page}");
}
