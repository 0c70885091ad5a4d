//! Why the store did not do what it was asked for, in words of its own: the database's stay inside.

use std::time::Duration;

/// How databases say that they cannot write: SQLite's "full", and what it makes of a limit of the file's size (the file
/// or its shared memory cannot be written), PostgreSQL's "disk full".
const FULL: [&str; 4] = ["13", "778", "4874", "53100"];

/// How PostgreSQL says that it starts, shuts down, is out of connections, has ended a transaction that nothing was heard
/// of, or that others hold what is asked for.
const AWAY: [&str; 6] = ["57P01", "57P02", "57P03", "53300", "25P03", "55P03"];

/// Why something could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not do it.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
    /// The database's server cannot be reached at the moment, or is only starting.
    #[error("the database cannot be reached at the moment")]
    Away(#[source] sqlx::Error),
    /// A pooler stands between, and it ends transactions after their first statement.
    #[error(
        "the database is behind a pooler in statement mode, which takes no transactions: let it pool by transaction or session"
    )]
    Statements,
    /// Nothing is heard of changes that are announced.
    #[error("what is announced in the database is not heard at the connection that listens")]
    Deaf,
    /// Nothing more can be written.
    #[error("the database cannot write; its disk is full, or its file must not grow")]
    Full(#[source] sqlx::Error),
    /// The database is silent.
    #[error("the database did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// A SQLite that may corrupt its file.
    #[error("SQLite {version} has a fault that can corrupt the database; 3.51.3 or later is needed")]
    SqliteTooOld {
        /// The version that was found.
        version: String,
    },
    /// Another control plane leads by now; nothing was written.
    #[error("another control plane does this by now")]
    Fenced,
    /// Neither a SQLite nor a PostgreSQL URL.
    #[error("--database-url must begin with postgres:// or postgresql://")]
    UnknownUrl,
}

impl StoreError {
    /// Whether the database's server cannot be reached at the moment, or is only starting.
    pub fn is_away(&self) -> bool {
        matches!(self, StoreError::Silent(_) | StoreError::Away(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let said = error.as_database_error();
        if said.is_some_and(|said| said.message().contains("statement pooling mode")) {
            return StoreError::Statements;
        }
        let code = said.and_then(|said| said.code()).unwrap_or_default();
        let is_lost = matches!(error, sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut);
        if FULL.contains(&code.as_ref()) {
            StoreError::Full(error)
        } else if is_lost || AWAY.contains(&code.as_ref()) {
            StoreError::Away(error)
        } else {
            StoreError::Database(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::rows::Binding;
    use crate::store::{Store, StoreError};

    fn binding(id: String) -> Binding {
        let text = |text: &str| text.to_owned();
        Binding {
            dialect: text("d"),
            id,
            key_id: text("k"),
            channel: text("c"),
            model: text("m"),
            made_at_ms: 1,
        }
    }

    #[tokio::test]
    async fn a_full_database_says_so_and_takes_writes_again_when_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(dir.path(), 1).await.unwrap();
        let Store::Sqlite(pools) = &store else { panic!("SQLite was asked for") };
        // A limit holds for its connection, which is another one after it was met.
        let limit = async |pages: &'static str| sqlx::query(pages).execute(&pools.write.0).await.unwrap();
        let made: Vec<_> = (0..20).map(|n| binding(format!("{n}-{}", "x".repeat(9000)))).collect();
        limit("pragma max_page_count = 1").await;
        let refused = store.keep_bindings(&made).await.unwrap_err();
        assert!(matches!(refused, StoreError::Full(_)) && !refused.is_away(), "{refused:?}");
        assert!(refused.to_string().contains("disk is full"), "{refused}");
        assert_eq!(store.binding("d", &made[0].id, "k").await.unwrap(), None, "nothing of it is kept");
        limit("pragma max_page_count = 1000000").await;
        store.keep_bindings(&made).await.unwrap();
        assert_eq!(store.binding("d", &made[19].id, "k").await.unwrap().as_ref(), made.last());
    }
}
