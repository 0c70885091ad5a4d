//! The lease of the one control plane that does the periodic work, by the database's own clock.

use super::pool::{Pool, query, query_as};
use super::{Connection, NOW_MS, statements};
use crate::store::convert::{from_db, to_db};

statements! {
    // A lease that was not renewed in time is taken anew also by its old holder: what it has under way is of before. One
    // that ends later than any can was taken before the database's clock went back, and would hold for as long as that;
    // not one that ends a little later: whoever asks read the clock before it waited for the row.
    // An epoch is the time at which it began: one that a database lost, which was put back, does not come again.
    CLAIM = "update leader set
               epoch = case when holder = $1 and until_ms > $2 then epoch when epoch < $2 then $2 else epoch + 1 end,
               holder = $1, until_ms = $2 + $3
             where id = 1 and (holder = $1 or until_ms <= $2 or until_ms > $2 + $3 + $3)
             returning epoch";
    RESIGN = "update leader set until_ms = 0 where id = 1 and holder = $1 and epoch = $2";
    // Whoever takes the lease waits for the end of the transaction that has written this.
    FENCE = "update leader set epoch = epoch where id = 1 and epoch = $1 returning epoch";
}

/// Takes or renews the lease. Returns its epoch; none when another one holds it.
pub async fn claim(pool: &Pool, holder: &str, lease_ms: u64) -> Result<Option<u64>, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let (now_ms,): (i64,) = query_as(NOW_MS).fetch_one(&mut *tx).await?;
    let claimed: Option<(i64,)> =
        query_as(CLAIM).bind(holder).bind(now_ms).bind(to_db(lease_ms)).fetch_optional(&mut *tx).await?;
    tx.commit().await?;
    Ok(claimed.map(|(epoch,)| from_db(epoch)))
}

/// Ends a lease that is still held.
pub async fn resign(pool: &Pool, holder: &str, epoch: u64) -> Result<(), sqlx::Error> {
    pool.run(query(RESIGN).bind(holder).bind(to_db(epoch))).await.map(drop)
}

/// Begins what only the leader of this epoch may write: `RowNotFound` when it is over.
pub async fn fence(tx: &mut Connection, epoch: u64) -> Result<(), sqlx::Error> {
    query(FENCE).bind(to_db(epoch)).fetch_one(&mut *tx).await.map(drop)
}
