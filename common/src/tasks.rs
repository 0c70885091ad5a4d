//! Tasks with an owner: spawned under a name, cancelled together, waited for in bounded time.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// Spawns tasks and waits for them. Clones share the same tasks.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Tasks::default()
    }

    /// Spawns a task. It gets a token that is cancelled at shutdown; a loop that sees it returns.
    /// A panic ends the task and is logged as an error.
    pub fn spawn<F, T>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: FnOnce(CancellationToken) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        let future = task(self.token.clone()).instrument(tracing::info_span!("task", task = name));
        let inner = self.tracker.spawn(future);
        self.tracker.spawn(async move {
            if let Err(error) = inner.await
                && error.is_panic()
            {
                tracing::error!(task = name, "task {name} panicked");
            }
        })
    }

    /// The token of all tasks.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Cancels all tasks and waits for them, at most `bound`. Returns whether all have ended.
    pub async fn stop(&self, bound: Duration) -> bool {
        self.token.cancel();
        self.tracker.close();
        tokio::time::timeout(bound, self.tracker.wait()).await.is_ok()
    }
}
