//! `StatusService`: what was observed, once or whenever the numbers change.

use std::time::Duration;

use common::first_byte::Percentiles;
use common::pb::admin as pb;
use pb::status_service_server::StatusService;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response};

use super::Admin;
use crate::grpc::status;
use crate::observed::look::{self, WINDOW_DEFAULT};
use crate::observed::{ChannelStatus, ModelStatus, Requests, Status};

/// Old counts leave the window by time alone, and other control planes count too, so a watch looks
/// this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Many changes at once are shown as one.
const SETTLE: Duration = Duration::from_millis(250);

#[tonic::async_trait]
impl StatusService for Admin {
    async fn get_status(
        &self,
        request: Request<pb::GetStatusRequest>,
    ) -> Result<Response<pb::GetStatusResponse>, tonic::Status> {
        let pb::GetStatusRequest { window_seconds, model } = request.into_inner();
        let seen = self.look(&Wish::new(window_seconds, model)).await?;
        Ok(Response::new(pb::GetStatusResponse { status: Some(shown(seen)) }))
    }

    type WatchStatusStream = ReceiverStream<Result<pb::WatchStatusResponse, tonic::Status>>;

    async fn watch_status(
        &self,
        request: Request<pb::WatchStatusRequest>,
    ) -> Result<Response<Self::WatchStatusStream>, tonic::Status> {
        let pb::WatchStatusRequest { window_seconds, model } = request.into_inner();
        let wish = Wish::new(window_seconds, model);
        // One waits here at most: who reads slowly gets fewer and newer ones.
        let (tx, rx) = mpsc::channel(1);
        let watched = self.clone();
        self.plane.streams.spawn("watch status", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = watched.follow(wish, tx) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(rx)))
    }
}

/// What is asked for.
struct Wish {
    window: Duration,
    model: Option<String>,
}

impl Wish {
    fn new(window_seconds: u64, model: String) -> Self {
        let window = if window_seconds == 0 { WINDOW_DEFAULT } else { Duration::from_secs(window_seconds) };
        Wish { window, model: Some(model).filter(|model| !model.is_empty()) }
    }
}

impl Admin {
    async fn look(&self, wish: &Wish) -> Result<Status, tonic::Status> {
        look::status(&self.plane, wish.window, wish.model.as_deref()).await.map_err(status::of)
    }

    /// Ends when nobody listens, or when there is nothing more to see.
    async fn follow(&self, wish: Wish, tx: mpsc::Sender<Result<pb::WatchStatusResponse, tonic::Status>>) {
        let mut counted = self.plane.counted.subscribe();
        let mut nodes = self.plane.nodes.subscribe();
        let mut wanted = self.plane.head.subscribe();
        let mut last: Option<Status> = None;
        loop {
            counted.borrow_and_update();
            nodes.borrow_and_update();
            wanted.borrow_and_update();
            let seen = match self.look(&wish).await {
                Ok(seen) => seen,
                Err(refused) => {
                    let _ = tx.send(Err(refused)).await;
                    return;
                }
            };
            if last.as_ref().is_none_or(|last| !seen.says_the_same_as(last)) {
                last = Some(seen.clone());
                if tx.send(Ok(pb::WatchStatusResponse { status: Some(shown(seen)) })).await.is_err() {
                    return;
                }
            }
            sleep(SETTLE).await;
            tokio::select! {
                _ = counted.changed() => {}
                _ = nodes.changed() => {}
                _ = wanted.changed() => {}
                () = sleep(LOOK_EVERY) => {}
                () = tx.closed() => return,
            }
        }
    }
}

fn shown(seen: Status) -> pb::Status {
    pb::Status {
        at_ms: status::time(seen.at_ms),
        window_seconds: seen.window_seconds,
        revision: seen.revision,
        data_until_ms: status::time(seen.data_until_ms.unwrap_or(0)),
        models: seen.models.into_iter().map(model).collect(),
        channels: seen.channels.into_iter().map(channel).collect(),
        nodes_connected: seen.nodes_connected,
        nodes_known: seen.nodes_known,
        rollout: seen.rollout.unwrap_or_default(),
    }
}

fn model(status: ModelStatus) -> pb::ModelStatus {
    let Requests { served, exhausted, cut, bad_request, canceled, refused } = status.requests;
    pb::ModelStatus {
        model: status.model,
        served,
        exhausted,
        cut,
        bad_request,
        canceled,
        refused,
        success_rate: status.success_rate,
        channels: status.channels.into_iter().map(channel).collect(),
        first_byte: status.first_byte.map(first_byte),
    }
}

fn channel(status: ChannelStatus) -> pb::ChannelStatus {
    let classes = status.attempts.classes.into_iter();
    pb::ChannelStatus {
        channel: status.channel,
        ok: status.attempts.ok,
        failed: status.attempts.failed,
        neutral: status.attempts.neutral,
        success_rate: status.success_rate,
        classes: classes.map(|(class, count)| pb::ClassCount { class, count }).collect(),
        open_on: status.open_on,
        first_byte: status.first_byte.map(first_byte),
    }
}

fn first_byte(seen: Percentiles) -> pb::FirstByte {
    let Percentiles { count, p50_ms, p95_ms, p99_ms } = seen;
    pb::FirstByte { count, p50_ms, p95_ms, p99_ms }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::observed::fixture::Fixture;

    const BOUND: Duration = Duration::from_secs(20);

    async fn watch(fixture: &Fixture) -> ReceiverStream<Result<pb::WatchStatusResponse, tonic::Status>> {
        let admin = Admin { plane: fixture.plane.clone() };
        let request = pb::WatchStatusRequest { window_seconds: 0, model: "gpt-4o".to_owned() };
        admin.watch_status(Request::new(request)).await.unwrap().into_inner()
    }

    async fn next(stream: &mut ReceiverStream<Result<pb::WatchStatusResponse, tonic::Status>>) -> pb::Status {
        timeout(BOUND, stream.next()).await.unwrap().unwrap().unwrap().status.unwrap()
    }

    #[tokio::test]
    async fn a_watch_shows_the_numbers_at_once_and_again_when_they_change() {
        let fixture = Fixture::with_catalog().await;
        let mut stream = watch(&fixture).await;
        let first = next(&mut stream).await;
        assert_eq!((first.window_seconds, first.revision, first.models[0].success_rate), (3600, 1, None));

        fixture.count(1, 8, &[("direct", "ok", 3), ("reseller", "timeout", 1)], &[("served", 3)]).await;
        fixture.plane.counted.send_modify(|windows| *windows += 1);
        let counted = next(&mut stream).await;
        assert_eq!((counted.models[0].served, counted.models[0].success_rate), (3, Some(1.0)));
        let reseller = &counted.models[0].channels[0];
        assert_eq!(
            (reseller.channel.as_str(), reseller.failed, reseller.success_rate),
            ("reseller", 1, Some(0.0))
        );

        let _node = fixture.connect("node-a", &["reseller"]);
        let opened = next(&mut stream).await;
        assert_eq!(
            (opened.channels[1].open_on.as_slice(), opened.nodes_connected),
            (&["node-a".to_owned()][..], 1)
        );

        assert!(fixture.plane.streams.stop(BOUND).await);
        assert!(timeout(BOUND, stream.next()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_model_that_is_not_there_ends_a_watch_as_it_ends_a_call() {
        let fixture = Fixture::with_catalog().await;
        let admin = Admin { plane: fixture.plane.clone() };
        let ask = pb::GetStatusRequest { window_seconds: 0, model: "gpt-40".to_owned() };
        let refused = admin.get_status(Request::new(ask)).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::NotFound);
        let ask = pb::WatchStatusRequest { window_seconds: 0, model: "gpt-40".to_owned() };
        let mut stream = admin.watch_status(Request::new(ask)).await.unwrap().into_inner();
        let refused = timeout(BOUND, stream.next()).await.unwrap().unwrap().unwrap_err();
        assert!(refused.message().contains("did you mean \"gpt-4o\"?"), "{refused}");
    }
}
