//! `RequestService`.

use common::pb::{admin as pb, fleet};
use common::record::{self, Course, End, Fate, Step};
use pb::request_service_server::RequestService;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::error::Error;
use crate::grpc::status;
use crate::records;
use crate::revision;
use crate::store::rows::{Filter, FoundRecord, RequestSummary, UsageFilter, Used, UsedBy};

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1000;

#[tonic::async_trait]
impl RequestService for Admin {
    async fn list_requests(
        &self,
        request: Request<pb::ListRequestsRequest>,
    ) -> Result<Response<pb::ListRequestsResponse>, Status> {
        let pb::ListRequestsRequest { filter, limit, before } = request.into_inner();
        let filter = wanted(filter.unwrap_or_default()).map_err(status::of)?;
        let before = searchable("before", before).map_err(status::of)?;
        let limit = if limit == 0 { LIMIT_DEFAULT } else { limit.min(LIMIT_MAX) };
        let listed = self.plane.store.requests(&filter, &before, limit).await;
        let listed = listed.map_err(|error| status::of(error.into()))?;
        Ok(Response::new(pb::ListRequestsResponse { requests: listed.into_iter().map(summary).collect() }))
    }

    async fn get_request(
        &self,
        request: Request<pb::GetRequestRequest>,
    ) -> Result<Response<pb::GetRequestResponse>, Status> {
        let (found, record) = self.record_of(request.into_inner().id).await.map_err(status::of)?;
        let FoundRecord { node, cost, price, .. } = found;
        let (cost_pico_usd, price_pico_usd) = (cost, price);
        Ok(Response::new(pb::GetRequestResponse {
            node,
            record: Some(record),
            cost_pico_usd,
            price_pico_usd,
        }))
    }

    async fn count_failures(
        &self,
        request: Request<pb::CountFailuresRequest>,
    ) -> Result<Response<pb::CountFailuresResponse>, Status> {
        let filter = wanted(request.into_inner().filter.unwrap_or_default()).map_err(status::of)?;
        let counted = self.plane.store.failures(&filter).await.map_err(|error| status::of(error.into()))?;
        let failures = counted.into_iter().map(|count| pb::FailureCount {
            channel: count.channel,
            class: count.class,
            attempts: count.attempts,
            cured: count.cured,
        });
        Ok(Response::new(pb::CountFailuresResponse { failures: failures.collect() }))
    }

    async fn replay_request(
        &self,
        request: Request<pb::ReplayRequestRequest>,
    ) -> Result<Response<pb::ReplayRequestResponse>, Status> {
        let pb::ReplayRequestRequest { id, revision } = request.into_inner();
        Ok(Response::new(self.replay(id, revision).await.map_err(status::of)?))
    }

    async fn list_usage(
        &self,
        request: Request<pb::ListUsageRequest>,
    ) -> Result<Response<pb::ListUsageResponse>, Status> {
        let pb::ListUsageRequest { first_day, last_day, key, model, by_day, by_key, by_model } =
            request.into_inner();
        let named = |field, text| Ok(Some(searchable(field, text)?).filter(|text| !text.is_empty()));
        let (key, model) =
            (named("key", key).map_err(status::of)?, named("model", model).map_err(status::of)?);
        let filter = UsageFilter { first_day, last_day, key, model, by_day, by_key, by_model };
        let listed = self.plane.store.usage(&filter).await.map_err(|error| status::of(error.into()))?;
        Ok(Response::new(pb::ListUsageResponse { usage: listed.into_iter().map(usage).collect() }))
    }
}

fn usage((UsedBy { day, key, model }, used): (UsedBy, Used)) -> pb::Usage {
    pb::Usage {
        day,
        key,
        model,
        requests: used.requests,
        served: used.served,
        input: used.input,
        cached_input: used.cached_input,
        output: used.output,
        searches: used.searches,
        audio_ms: used.audio_ms,
        cost_pico_usd: used.cost,
        price_pico_usd: used.price,
        unpriced: used.unpriced,
    }
}

impl Admin {
    async fn record_of(&self, id: String) -> Result<(FoundRecord, fleet::Record), Error> {
        let id = searchable("id", id)?;
        let none = || Error::NotFound { what: "request", name: id.clone() };
        let found = self.plane.store.record(&id, None).await?.ok_or_else(none)?;
        let record = records::read(&found)?;
        Ok((found, record))
    }

    async fn replay(&self, id: String, revision: u64) -> Result<pb::ReplayRequestResponse, Error> {
        let (_, record) = self.record_of(id).await?;
        let base = Instant::now();
        let (revision, again) = if revision == 0 {
            (record.revision, record::again(&record, base))
        } else {
            let chain = self.chain_in(revision, &record).await?;
            (revision, record::over(&record, &chain, base))
        };
        let again = again.map_err(|unread| Error::Argument { field: "id", message: unread.to_string() })?;
        let was = record::recorded(&record);
        Ok(pb::ReplayRequestResponse {
            request_id: record.request_id,
            revision,
            is_same: was == again,
            was: Some(course(was)),
            again: Some(course(again)),
        })
    }

    /// The chain that a request would have had in a revision.
    async fn chain_in(&self, number: u64, record: &fleet::Record) -> Result<Vec<fleet::RecordHop>, Error> {
        let full = revision::find(&self.plane, number).await?;
        let checked = revision::read(full.document).await?;
        let checked = checked.map_err(|_| Error::Broken("this version cannot read that revision"))?;
        let chain = records::chain_of(&checked.catalog.compile(number), &record.model, &record.dialect);
        let absent = || Error::NotFound {
            what: "chain",
            name: format!("\"{}\" for {} in revision {number}", record.model, record.dialect),
        };
        if chain.is_empty() { Err(absent()) } else { Ok(chain) }
    }
}

fn wanted(filter: pb::RequestFilter) -> Result<Filter, Error> {
    let pb::RequestFilter { since_ms, until_ms, status, attempts_min, slower_than_ms, .. } = filter;
    let since_ms = u64::try_from(since_ms).unwrap_or(0);
    let until_ms = u64::try_from(until_ms).ok().filter(|until_ms| *until_ms > 0);
    Ok(Filter {
        since_ms,
        until_ms: until_ms.unwrap_or(i64::MAX as u64),
        model: searchable("model", filter.model)?,
        node: searchable("node", filter.node)?,
        key: searchable("key", filter.key)?,
        outcome: searchable("outcome", filter.outcome)?,
        status,
        attempts_min,
        slower_than_us: slower_than_ms.saturating_mul(1000),
        channel: searchable("channel", filter.channel)?,
        class: searchable("class", filter.class)?,
    })
}

fn searchable(field: &'static str, text: String) -> Result<String, Error> {
    if text.contains('\0') {
        return Err(Error::Argument { field, message: "a zero is in it".to_owned() });
    }
    Ok(text)
}

fn summary(row: RequestSummary) -> pb::RequestSummary {
    pb::RequestSummary {
        request_id: row.request_id,
        node: row.node,
        began_at_ms: status::time(row.began_at_ms),
        model: row.model,
        dialect: row.dialect,
        key: row.key,
        channel: row.channel,
        outcome: row.outcome,
        status: row.status,
        attempts: row.attempts,
        duration_us: row.duration_us,
    }
}

fn course(course: Course) -> pb::Course {
    let (end, code, status) = match course.end {
        End::Answered => (pb::CourseEnd::Answered, String::new(), 0),
        End::Left => (pb::CourseEnd::Left, String::new(), 0),
        End::Refused { code, status } => (pb::CourseEnd::Refused, code, status),
        End::Unknown => (pb::CourseEnd::Unknown, String::new(), 0),
    };
    pb::Course { steps: course.steps.into_iter().map(step).collect(), end: end.into(), code, status }
}

fn step(step: Step) -> pb::CourseStep {
    let (fate, why) = match step.fate {
        Fate::Out(why) => (pb::CourseFate::Out, why),
        Fate::PassedOver => (pb::CourseFate::PassedOver, String::new()),
        Fate::Failed(class) => (pb::CourseFate::Failed, class),
        Fate::Answered => (pb::CourseFate::Answered, String::new()),
        Fate::Left => (pb::CourseFate::Left, String::new()),
        Fate::Unknown => (pb::CourseFate::Unknown, String::new()),
    };
    pb::CourseStep { channel: step.channel, upstream_model: step.upstream_model, fate: fate.into(), why }
}
