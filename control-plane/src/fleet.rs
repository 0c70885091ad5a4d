//! What nodes speak to: the stream over which they learn what to serve, and the calls by which their counters and
//! bindings and records come home and bindings are found. Each speaks for a node: what it names must be that one.

mod admit;
mod bindings;
mod enrol;
mod report;
mod session;
mod stream;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::limits::STREAMS_PER_SECOND;
use common::pb::fleet as pb;
use common::tasks::Tasks;
use pb::fleet_bindings_server::FleetBindings;
use pb::fleet_records_server::FleetRecords;
use pb::fleet_report_server::FleetReport;
use pb::fleet_sync_server::FleetSync;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::error::Error;
use crate::grpc::auth::fleet::Speaker;
use crate::grpc::status;
use crate::listener::Proof;
use crate::plane::Plane;
use crate::records;
use admit::Admission;
use session::Greeting;
pub use session::Origin;
use stream::{Stream, Subscription};

/// `FleetSync`, `FleetReport`, `FleetBindings` and `FleetRecords`.
#[derive(Clone)]
pub struct Fleet {
    plane: Arc<Plane>,
    tasks: Tasks,
    admission: Arc<Mutex<Admission>>,
    greeting: Greeting,
    stream_age: Duration,
}

impl Fleet {
    /// The services of one process. Streams run as `tasks` and end with them, and are drained at about this age.
    pub fn new(plane: Arc<Plane>, tasks: Tasks, stream_age: Duration) -> Self {
        let greeting = Greeting {
            control_plane_id: plane.own.id.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let admission = Admission::new(STREAMS_PER_SECOND, Instant::now());
        Fleet { plane, tasks, admission: Arc::new(Mutex::new(admission)), greeting, stream_age }
    }

    fn admit(&self) -> Result<(), Status> {
        let mut admission = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
        admission.admit(Instant::now()).map_err(|again| {
            self.plane.metrics.stream_refused();
            status::busy("too many new streams", again)
        })
    }
}

#[tonic::async_trait]
impl FleetSync for Fleet {
    type SyncStream = ReceiverStream<Result<pb::SyncResponse, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<pb::SyncRequest>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        let speaker = Speaker::of(&request)?;
        self.admit()?;
        let wanted = Subscription::new(&self.plane).ok_or_else(|| status::of(Error::NotReady))?;
        let (outbound, messages) = mpsc::channel(stream::QUEUE);
        let proof = request.extensions().get::<Proof>().cloned().unwrap_or_default();
        let origin = speaker.origin(&self.plane, &proof);
        let stream = Stream { plane: self.plane.clone(), inbound: request.into_inner(), outbound, origin };
        let greeting = self.greeting.clone();
        let age = stream::age(self.stream_age, fastrand::f64());
        self.tasks.spawn("node stream", move |stop| stream.run(greeting, wanted, age, stop));
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}

#[tonic::async_trait]
impl FleetReport for Fleet {
    async fn report(
        &self,
        request: Request<pb::ReportRequest>,
    ) -> Result<Response<pb::ReportResponse>, Status> {
        let speaker = Speaker::of(&request)?;
        let request = request.into_inner();
        speaker.check(&request.node_id, &self.plane)?;
        let claimed_through = report::report(&self.plane, request).await.map_err(status::of)?;
        Ok(Response::new(pb::ReportResponse { claimed_through }))
    }
}

#[tonic::async_trait]
impl FleetBindings for Fleet {
    async fn report_bindings(
        &self,
        request: Request<pb::ReportBindingsRequest>,
    ) -> Result<Response<pb::ReportBindingsResponse>, Status> {
        let speaker = Speaker::of(&request)?;
        let request = request.into_inner();
        speaker.check(&request.node_id, &self.plane)?;
        bindings::report(&self.plane, request).await.map_err(status::of)?;
        Ok(Response::new(pb::ReportBindingsResponse {}))
    }

    async fn find_binding(
        &self,
        request: Request<pb::FindBindingRequest>,
    ) -> Result<Response<pb::FindBindingResponse>, Status> {
        let found = bindings::find(&self.plane, request.into_inner()).await;
        Ok(Response::new(found.map_err(status::of)?))
    }
}

#[tonic::async_trait]
impl FleetRecords for Fleet {
    async fn upload_records(
        &self,
        request: Request<pb::UploadRecordsRequest>,
    ) -> Result<Response<pb::UploadRecordsResponse>, Status> {
        let speaker = Speaker::of(&request)?;
        let request = request.into_inner();
        speaker.check(&request.node_id, &self.plane)?;
        let plane = &self.plane;
        let came = request.records.len();
        let pages = plane.book.open(plane, &request.records).await.map_err(status::of)?;
        let rows =
            records::rows(request, &plane.keeping, &pages, plane.clock.now_ms()).map_err(status::of)?;
        plane.store.keep_records(&rows).await.map_err(|error| status::of(error.into()))?;
        let kept = rows.iter().filter(|row| row.is_kept).count();
        plane.metrics.records(kept, came - kept);
        Ok(Response::new(pb::UploadRecordsResponse {}))
    }
}
