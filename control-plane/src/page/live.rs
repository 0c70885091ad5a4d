//! Tells open pages that there is something new to see. An event says only that: the page is then fetched as ever, so that
//! what it shows is one thing, with or without a script.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;

use super::view::Views;
use crate::plane::Plane;

/// So many pages are told at once; further ones are asked to look by themselves.
pub const LISTENERS_MAX: usize = 256;
/// Ages and spans move by time alone, and other control planes count too.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Many changes at once are told as one.
const SETTLE: Duration = Duration::from_secs(2);
/// Proxies cut what is silent for longer than a minute or so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers with a stream of events.
pub async fn events(State(views): State<Arc<Views>>) -> Response {
    let Ok(place) = views.listeners.clone().try_acquire_owned() else {
        let said = "too many pages are open: look again by yourself\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], said).into_response();
    };
    // One waits here at most: who reads slowly is told less often.
    let (tx, rx) = mpsc::channel(1);
    let plane = views.plane.clone();
    views.plane.streams.spawn("page listener", |stop| async move {
        let _ = stop.run_until_cancelled(follow(&plane, &tx)).await;
        drop(place);
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(ReceiverStream::new(rx)).keep_alive(keep_alive).into_response()
}

/// Ends when nobody listens any more.
async fn follow(plane: &Plane, tx: &mpsc::Sender<Result<Event, Infallible>>) {
    let mut counted = plane.counted.subscribe();
    let mut nodes = plane.nodes.subscribe();
    let mut wanted = plane.head.subscribe();
    loop {
        tokio::select! {
            changed = counted.changed() => if changed.is_err() { return },
            changed = nodes.changed() => if changed.is_err() { return },
            changed = wanted.changed() => if changed.is_err() { return },
            () = sleep(LOOK_EVERY) => {}
            () = tx.closed() => return,
        }
        sleep(SETTLE).await;
        counted.borrow_and_update();
        nodes.borrow_and_update();
        wanted.borrow_and_update();
        let event = Event::default().event("view").data(plane.clock.now_ms().to_string());
        if tx.send(Ok(event)).await.is_err() {
            return;
        }
    }
}
