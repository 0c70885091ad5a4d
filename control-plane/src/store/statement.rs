//! A statement of the lists. It is no plain text, so that there is one way to run it, that of `pool.rs`.

/// The text of a statement that is known when the program is built.
#[derive(Debug, Clone, Copy)]
pub struct Statement(&'static str);

impl Statement {
    /// Takes a text that both databases understand, or the one that it is for.
    pub const fn new(sql: &'static str) -> Self {
        Statement(sql)
    }

    /// The text.
    pub const fn sql(self) -> &'static str {
        self.0
    }
}
