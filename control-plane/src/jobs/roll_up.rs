//! What becomes of what is old: counters are put together, and what nobody needs any more is removed.

use std::time::Duration;

use common::day;
use common::limits::BINDING_AGE_MAX;

use super::keep_nodes;
use crate::error::Error;
use crate::plane::Plane;
use crate::store::{
    ALERTS_KEPT, BOOTS_KEPT, BY_HOUR_AFTER, BY_MINUTE_AFTER, COUNTERS_KEPT, FIRST_BYTES_KEPT,
    NODE_COUNTS_KEPT, NODES_KEPT, REVISIONS_KEPT, TOKENS_KEPT, USAGE_KEPT,
};

const MINUTE_MS: u64 = 60 * 1000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Puts old counters together and removes what nobody needs any more: of the store, whoever leads; of the memory, each.
pub async fn roll_up(plane: &Plane) -> Result<(), Error> {
    let before = |age: Duration| plane.clock.now_ms().saturating_sub(age.as_millis() as u64);
    plane.nodes.forget(before(NODES_KEPT));
    let Some(leader) = plane.leader.epoch() else { return Ok(()) };
    plane.store.roll_up(leader, before(BY_MINUTE_AFTER), MINUTE_MS).await?;
    plane.store.roll_up(leader, before(BY_HOUR_AFTER), HOUR_MS).await?;
    plane.store.forget(leader, before(COUNTERS_KEPT)).await?;
    plane.store.forget_first_bytes(leader, before(FIRST_BYTES_KEPT)).await?;
    plane.store.forget_node_counts(leader, before(NODE_COUNTS_KEPT)).await?;
    plane.store.forget_boots(leader, before(BOOTS_KEPT)).await?;
    plane.store.forget_bindings(leader, before(BINDING_AGE_MAX)).await?;
    // A batch at a time, so that nobody who writes waits for long.
    while plane.store.forget_records(leader, before(plane.keeping.age)).await? {}
    plane.store.forget_usage(leader, day::of(before(USAGE_KEPT))).await?;
    plane.store.forget_alerts(leader, before(ALERTS_KEPT)).await?;
    plane.store.forget_mismatches(before(ALERTS_KEPT)).await?;
    plane.store.forget_nodes(leader, before(NODES_KEPT)).await?;
    plane.store.forget_tokens(leader, before(TOKENS_KEPT)).await?;
    prune_revisions(plane, leader).await
}

async fn prune_revisions(plane: &Plane, leader: u64) -> Result<(), Error> {
    // What nodes run by now is what the store says of them.
    keep_nodes(plane).await?;
    let newest = plane.store.heads().await?.revision;
    let pruned = plane.store.prune_revisions(leader, (newest + 1).saturating_sub(REVISIONS_KEPT)).await?;
    if pruned > 0 {
        tracing::info!("{pruned} old catalog revisions removed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Facts;
    use crate::observed::fixture::{Fixture, NOW_MS};

    #[tokio::test]
    async fn what_is_older_than_a_page_shows_is_forgotten_and_nothing_else() {
        let fixture = Fixture::unread().await;
        let plane = &fixture.plane;
        fixture.count(1, 0, &[("a", "ok", 1)], &[("served", 1)]).await;
        drop(plane.nodes.connect("gone", Facts::default()));
        plane.leader.claim(&plane.store).await.unwrap();
        let _there = plane.nodes.connect("there", Facts::default());
        keep_nodes(plane).await.unwrap();
        let known = async |at: Duration| {
            plane.clock.set_ms(NOW_MS + at.as_millis() as u64);
            roll_up(plane).await.unwrap();
            let counted = plane.store.windows(0, u64::MAX, None).await.unwrap();
            (counted.requests.len(), counted.until_ms, plane.nodes.count().1)
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(known(COUNTERS_KEPT - hour).await, (1, NOW_MS, 2));
        assert_eq!(plane.store.nodes().await.unwrap().len(), 2);
        assert_eq!(known(COUNTERS_KEPT + hour).await, (0, NOW_MS, 1), "its boot is still known");
        assert_eq!(known(BOOTS_KEPT + hour).await, (0, 0, 1), "a node that is connected stays");
        assert!(plane.store.nodes().await.unwrap().is_empty());
    }
}
