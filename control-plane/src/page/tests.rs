//! The page and the API through the router, over a store with counts in it.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;

use super::*;
use crate::nodes::Facts;
use crate::observed::fixture::{Fixture, NOW_MS, suspended};

const HOSTILE: &str = "<script>alert(1)</script>";

struct Answer {
    status: StatusCode,
    headers: axum::http::HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn get(fixture: &Fixture, path: &str) -> Answer {
    get_as(fixture, Sees::All, path).await
}

async fn get_as(fixture: &Fixture, sees: Sees, path: &str) -> Answer {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let routes = routes(fixture.plane.clone()).merge(assets()).layer(axum::Extension(sees));
    let response = routes.oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    Answer { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
}

/// A page with a good last hour on one channel, and a bad one the day before.
async fn busy() -> Fixture {
    let fixture = Fixture::with_catalog().await;
    let long_ago = [("reseller", "ok", 96), ("reseller", "overloaded", 3), ("reseller", "connect", 1)];
    fixture.count(1, 7 * 3600, &long_ago, &[("served", 99), ("exhausted", 1), ("canceled", 2)]).await;
    fixture.count(2, 1800, &[("direct", "ok", 10)], &[("served", 10)]).await;
    fixture.count(3, 8, &[], &[("invalid_api_key", 4)]).await;
    fixture
}

#[tokio::test]
async fn the_page_shows_both_rates_over_five_spans_with_counts_bars_times_and_age() {
    let fixture = busy().await;
    let _node = fixture.connect("node-a", &["reseller"]);
    let page = get(&fixture, "/").await;
    assert_eq!(page.status, StatusCode::OK);
    let html = page.body.replace("</span> <small>", "<small>");
    for shown in [
        "99.09 %<small>109 served, 1 failed</small>",
        "100 %<small>10 served, 0 failed</small>",
        "96.00 %<small>96 ok, 4 failed</small>",
        "100 %<small>10 ok, 0 failed</small>",
        "<small class=\"times\">first byte p50 330 ms, p95 330 ms, p99 330 ms</small>",
        "<small class=\"times\">first byte p50 220 ms, p95 220 ms, p99 220 ms</small>",
        "requests by hour, last 24 h: failures in 1 of 24 hours, 22 without data; worst 2026-11-30 06:00 UTC: 99.00 %, \
         99 served, 1 failed",
        "direct by day, last 90 d: nothing failed; 89 of 90 days without data",
        "<title>2026-11-30 13:00 UTC: 100 %, 10 served, 0 failed</title>",
        "<dd>8 s old</dd>",
        "In the last 24 h: 1 exhausted, 2 canceled by callers, 4 refused by us.",
        "<dd>connect 1, overloaded 3</dd>",
        "<strong class=\"bad\">reseller</strong> is open on node-a",
        "<dd>1 of 1 connected</dd>",
        "<th scope=\"row\">node-a</th>",
        "none, should run 1",
    ] {
        assert!(html.contains(shown), "{shown} is not in\n{html}");
    }
}

#[tokio::test]
async fn no_data_is_said_and_never_shown_as_100_percent() {
    let fixture = Fixture::with_catalog().await;
    let html = get(&fixture, "/").await.body;
    assert!(!html.contains('%'), "{html}");
    // Requests, two channels of the model, two channels of all: each over five spans, and with two rows of bars.
    assert_eq!(html.matches("<span class=\"rate\">no data</span>").count(), 25);
    assert_eq!(
        (html.matches(": no data\"").count(), html.matches("<title>").count()),
        (10, 1),
        "the page has a title"
    );
    assert!(html.contains("No node was ever connected."));
    assert!(html.contains("No breaker is open, and nothing is suspended or cools down."));
    let empty = Fixture::unread().await;
    empty.plane.head.refresh(&empty.plane.store).await.unwrap();
    let html = get(&empty, "/").await.body;
    assert!(html.contains("The catalog has no models yet.") && html.contains("none yet"), "{html}");
}

#[tokio::test]
async fn names_from_outside_cannot_become_markup() {
    let fixture = busy().await;
    let _node = fixture.connect(HOSTILE, &[HOSTILE, "reseller"]);
    let html = get(&fixture, "/").await.body;
    assert!(html.contains("&lt;script&gt;") && html.matches("<script").count() == 1, "{html}");
}

#[tokio::test]
async fn the_page_has_no_script_and_no_style_but_its_own_and_says_so_to_the_browser() {
    let fixture = busy().await;
    for path in [
        "/",
        "/api/v1/status",
        "/api/v1/series",
        "/assets/sluice.css",
        "/assets/live.js",
        "/assets/sluice.svg",
    ] {
        let answer = get(&fixture, path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let html = get(&fixture, "/").await.body;
    assert!(!html.contains("style=") && !html.contains("<style") && html.matches("<script").count() == 1);
    assert!(html.contains("<script src=\"/assets/live.js\" defer=\"\"></script>"), "{html}");
    assert!(
        html.contains("href=\"/assets/sluice.css\"")
            && html.starts_with("<!doctype html>\n<html lang=\"en\">")
    );
    let css = get(&fixture, "/assets/sluice.css").await;
    assert_eq!(css.headers["content-type"], "text/css; charset=utf-8");
    assert!(css.body.contains("prefers-color-scheme: dark"));
    assert_eq!(get(&fixture, "/").await.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn the_page_loads_itself_anew_only_when_asked_and_not_too_often() {
    let fixture = Fixture::with_catalog().await;
    let is_refreshed = |html: &str, seconds: &str| {
        html.contains(&format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"))
    };
    assert!(!get(&fixture, "/").await.body.contains("http-equiv"));
    let refreshed = get(&fixture, "/?refresh=15").await.body;
    assert!(is_refreshed(&refreshed, "15") && !refreshed.contains("<script"), "{refreshed}");
    assert!(is_refreshed(&get(&fixture, "/?refresh=0").await.body, "5"));
    assert!(!get(&fixture, "/?refresh=x").await.body.contains("http-equiv"));
}

#[tokio::test]
async fn incidents_stand_on_the_page_in_the_json_and_in_the_feed_with_what_callers_saw() {
    let fixture = busy().await;
    let calm = get(&fixture, "/").await.body;
    assert!(calm.contains("None was observed in the last 7 days."), "one in a hundred is none\n{calm}");
    fixture
        .count(4, 40 * 60, &[("reseller", "timeout", 9)], &[("served", 1), ("exhausted", 8), ("cut", 1)])
        .await;
    let html = get(&fixture, "/").await.body;
    for shown in [
        "<strong>gpt-4o</strong> <span>from 2026-11-30 13:00 UTC to 2026-11-30 13:05 UTC, 5 min</span>",
        "Callers saw 10.00 %: 1 served, 9 failed (8 exhausted, 1 cut).",
        "What failed most: reseller timeout 9.",
    ] {
        assert!(html.contains(shown), "{shown} is not in\n{html}");
    }
    let json = get(&fixture, "/api/v1/incidents").await.json();
    let incident = &json["incidents"][0];
    assert_eq!((&incident["model"], &incident["success_rate"]), (&"gpt-4o".into(), &0.1.into()));
    assert_eq!(
        incident["causes"],
        serde_json::json!([{"channel": "reseller", "class": "timeout", "count": 9}])
    );
    let feed = get(&fixture, "/incidents.atom").await;
    assert_eq!(feed.headers["content-type"], "application/atom+xml; charset=utf-8");
    for part in [
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">",
        ":6770742d346f</id>",
        "<updated>2026-11-30T13:05:00Z</updated>",
    ] {
        assert!(feed.body.contains(part), "{part} is not in\n{}", feed.body);
    }
}

#[tokio::test]
async fn everybody_sees_models_and_channels_only_where_they_may() {
    let fixture = busy().await;
    let _node = fixture.connect("node-a", &["reseller"]);
    fixture.count(4, 40 * 60, &[("reseller", "timeout", 9)], &[("served", 1), ("exhausted", 9)]).await;
    let paths = [
        "/",
        "/api/v1/status?window=24h",
        "/api/v1/series",
        "/api/v1/incidents",
        "/incidents.atom",
        "/badge/gpt-4o.svg",
    ];
    let mut said = std::collections::BTreeMap::new();
    for path in paths {
        for sees in [Sees::All, Sees::Channels, Sees::Models] {
            let answer = get_as(&fixture, sees, path).await;
            assert_eq!(answer.status, StatusCode::OK, "{path} for {sees:?}");
            assert!(answer.body.contains("gpt-4o") || path == "/badge/gpt-4o.svg", "{path} for {sees:?}");
            for hidden in ["node-a", "evision", "ollout", "nodes_", "open_on", "breaker"] {
                let is_seen = answer.body.contains(hidden);
                assert!(!is_seen || sees == Sees::All, "{hidden} is in {path} for {sees:?}\n{}", answer.body);
            }
            let channels = ["reseller", "direct"].iter().filter(|name| answer.body.contains(**name)).count();
            said.insert((path, format!("{sees:?}")), channels);
        }
    }
    let channels = |sees: &str| paths.map(|path| said[&(path, sees.to_owned())]);
    assert_eq!(channels("All"), [2, 2, 2, 1, 1, 0]);
    assert_eq!(channels("Channels"), [2, 2, 2, 1, 1, 0]);
    assert_eq!(channels("Models"), [0; 6]);
    // The figures of the models are those that operators see.
    let rates = |json: serde_json::Value| json["models"][0]["success_rate"].clone();
    let [all, models] =
        [Sees::All, Sees::Models].map(|sees| get_as(&fixture, sees, "/api/v1/status?window=24h"));
    assert_eq!(rates(all.await.json()), rates(models.await.json()));
}

#[tokio::test]
async fn what_is_out_stands_there_with_its_reason_since_when_and_on_which_nodes_while_they_are_there() {
    let fixture = busy().await;
    let pause = suspended("direct");
    let facts = |pauses| Facts { pauses, ..Facts::default() };
    let nodes = ["a", "b"].map(|id| fixture.plane.nodes.connect(id, facts(vec![pause.clone()])));
    let html = get(&fixture, "/").await.body;
    let said = "<strong class=\"bad\">direct</strong> suspended (balance) since 2026-11-30 13:43:39 UTC, next try at \
                2026-11-30 13:45:39 UTC, on a, b";
    assert!(html.contains(said), "{said} is not in\n{html}");
    drop(nodes);
    assert!(
        !get(&fixture, "/").await.body.contains("suspended (balance)"),
        "nobody knows it of a node that is away"
    );
}

#[tokio::test]
async fn a_badge_says_what_callers_of_its_model_saw() {
    let fixture = busy().await;
    let badge = get(&fixture, "/badge/gpt-4o.svg").await;
    assert_eq!(
        (badge.status, &badge.headers["content-type"]),
        (StatusCode::OK, &"image/svg+xml".parse().unwrap())
    );
    assert!(badge.body.contains("aria-label=\"gpt-4o: 99.09 % in 24 h\""), "{}", badge.body);
    let silent = Fixture::with_catalog().await;
    let badge = get(&silent, "/badge/gpt-4o.svg").await.body;
    assert!(badge.contains("gpt-4o: no data") && !badge.contains('%'), "{badge}");
    for path in ["/badge/gpt-4o", "/badge/gpt-5.svg", "/badge/.svg"] {
        assert_eq!(get(&fixture, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn who_has_the_view_that_there_is_gets_it_once_and_others_their_own() {
    let fixture = busy().await;
    let ask = async |sees: Sees, known: &str| {
        let request = Request::get("/").header("if-none-match", known).body(Body::empty()).unwrap();
        let response =
            routes(fixture.plane.clone()).layer(axum::Extension(sees)).oneshot(request).await.unwrap();
        let tag = response.headers()["etag"].to_str().unwrap().to_owned();
        (response.status().as_u16(), tag, to_bytes(response.into_body(), 1 << 20).await.unwrap().len())
    };
    let (status, tag, length) = ask(Sees::All, "\"other\"").await;
    assert!(status == 200 && length > 1000, "{status} {length}");
    assert_eq!(ask(Sees::All, &tag).await, (304, tag.clone(), 0));
    assert_eq!(ask(Sees::Models, &tag).await.0, 200, "what an operator saw is not what everybody sees");
    fixture.plane.clock.set_ms(NOW_MS + 1);
    assert_eq!(ask(Sees::All, &tag).await.0, 200);
}

#[tokio::test]
async fn open_pages_are_told_of_what_is_new_and_only_so_many() {
    let fixture = Fixture::with_catalog().await;
    let views = Arc::new(Views::new(fixture.plane.clone()));
    let open = || live::events(axum::extract::State(views.clone()));
    let first = open().await;
    assert_eq!(first.headers()["content-type"], "text/event-stream");
    let mut stream = first.into_body().into_data_stream();
    fixture.plane.counted.send_modify(|windows| *windows += 1);
    let told = tokio_stream::StreamExt::next(&mut stream).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&told), format!("event: view\ndata: {NOW_MS}\n\n"));

    let mut others = Vec::new();
    for _ in 1..live::LISTENERS_MAX {
        others.push(open().await);
    }
    let refused = open().await;
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"30".parse().unwrap())
    );
    drop(others);
    // A place is free again as soon as its page is gone.
    let place = views.listeners.acquire().await.unwrap();
    drop(place);
    assert_eq!(open().await.status(), StatusCode::OK);
    assert!(fixture.plane.streams.stop(std::time::Duration::from_secs(20)).await);
}

#[tokio::test]
async fn the_api_answers_with_the_status_of_a_window_and_a_model() {
    let fixture = busy().await;
    let _node = fixture.connect("node-a", &["reseller"]);
    let json = get(&fixture, "/api/v1/status?window=24h&model=gpt-4o").await.json();
    assert_eq!((&json["window_seconds"], &json["revision"]), (&86_400.into(), &1.into()));
    assert_eq!((&json["at_ms"], &json["data_until_ms"]), (&NOW_MS.into(), &(NOW_MS - 8000).into()));
    let model = &json["models"][0];
    assert_eq!(
        (&model["served"], &model["exhausted"], &model["refused"]),
        (&109.into(), &1.into(), &4.into())
    );
    let reseller = &model["channels"][0];
    assert_eq!(reseller["channel"], "reseller");
    assert_eq!(reseller["success_rate"], 0.96);
    assert_eq!(reseller["classes"], serde_json::json!({"connect": 1, "overloaded": 3}));
    assert_eq!(reseller["open_on"], serde_json::json!(["node-a"]));

    let hour = get(&fixture, "/api/v1/status").await.json();
    assert_eq!((&hour["window_seconds"], &hour["models"][0]["served"]), (&3600.into(), &10.into()));
    assert_eq!(hour["models"][0]["channels"][0]["success_rate"], serde_json::Value::Null);
}

#[tokio::test]
async fn the_api_answers_with_the_same_over_time_and_null_where_nothing_was_observed() {
    let fixture = busy().await;
    let json = get(&fixture, "/api/v1/series?window=8h&model=gpt-4o").await.json();
    assert_eq!((&json["at_ms"], &json["step_seconds"]), (&NOW_MS.into(), &3600.into()));
    let rates = |points: &serde_json::Value| -> Vec<_> {
        points.as_array().unwrap().iter().map(|point| point["success_rate"].clone()).collect()
    };
    let null = || serde_json::Value::Null;
    let model = &json["models"][0];
    let seen = vec![0.99.into(), null(), null(), null(), null(), null(), null(), 1.0.into()];
    assert_eq!(rates(&model["points"]), seen);
    assert_eq!((&model["points"][0]["served"], &model["points"][0]["canceled"]), (&99.into(), &2.into()));
    assert_eq!(model["points"][0]["at_ms"], json["from_ms"]);
    assert_eq!(
        model["channels"][0]["points"][0]["classes"],
        serde_json::json!({"connect": 1, "overloaded": 3})
    );
    assert_eq!(rates(&json["channels"][0]["points"])[7], 1.0);

    let days = get(&fixture, "/api/v1/series?window=90d").await.json();
    let points = days["models"][0]["points"].as_array().unwrap();
    assert_eq!((days["step_seconds"].as_u64(), points.len()), (Some(86_400), 90));
    assert_eq!(points[89]["served"], 109, "{}", points[89]);
}

#[tokio::test]
async fn the_api_says_what_is_wrong_with_a_question() {
    let fixture = Fixture::with_catalog().await;
    let table = [
        ("/api/v1/status?window=5", 400, "write it with a unit: 5m, 1h, 24h"),
        ("/api/v1/status?window=0s", 400, "must be a second at least"),
        ("/api/v1/status?windw=5m", 400, "unknown field `windw`"),
        ("/api/v1/series?step=1h&model=gpt-40", 404, "did you mean \"gpt-4o\"?"),
        ("/api/v1/series?window=3d&step=5m", 400, "kept by 1h: ask for a multiple of that"),
        ("/api/v1/series?window=3h&step=10s", 400, "kept by 1m: ask for a multiple of that"),
        ("/api/v1/series?window=1h&step=15s", 400, "kept by 10s: ask for a multiple of that"),
        ("/api/v1/series?window=90d&step=1h", 400, "more than 1000 points"),
        ("/api/v1/series?step=0s", 400, "step: must be a second at least"),
        ("/api/v1/series?window=9999999999y&step=1h", 400, "more than 1000 points"),
        ("/api/v1/status?model=gpt-40", 404, "did you mean \"gpt-4o\"?"),
    ];
    for (path, status, text) in table {
        let answer = get(&fixture, path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(text), "{path}: {message}");
    }
}

#[tokio::test]
async fn before_anything_was_read_both_say_that_they_are_not_ready() {
    let fixture = Fixture::unread().await;
    let page = get(&fixture, "/").await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.body.contains("not ready yet"), "{}", page.body);
    let api = get(&fixture, "/api/v1/status").await;
    assert_eq!(api.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(api.json()["error"]["code"], "unavailable");
}
