//! Names that must not be mixed up: of models, channels, nodes, boots and keys. Cheap to clone.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self { $name(name.into()) }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self { $name(name.into()) }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str { &self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )+};
}

names! {
    /// The public name that a caller puts in `model`.
    Model;
    /// A channel of the catalog.
    ChannelId;
    /// A gateway node, the same over restarts.
    NodeId;
    /// One run of a node's process.
    BootId;
    /// A client key, which is not the key itself; empty for a caller without one.
    KeyId;
}
