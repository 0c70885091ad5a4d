//! Waits for a condition up to a limit and says what was last seen. Tests await with this instead
//! of sleeping.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `look` has a value; after `limit` the last reason why it had none
/// is the error.
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, mut look: F) -> anyhow::Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    let deadline = Instant::now() + limit;
    loop {
        let last = match look().await {
            Ok(value) => return Ok(value),
            Err(reason) => reason,
        };
        if Instant::now() >= deadline {
            return Err(last.context(format!("not within {limit:?}: {what}")));
        }
        sleep(PAUSE).await;
    }
}
