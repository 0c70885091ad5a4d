//! Binds what an answer shows before the bytes that show it go on to the caller.

use common::dialect::Dialect;
use common::id::{ChannelId, KeyId, Model};
use common::limits::BINDING_ID_BYTES_MAX;

use super::{Bindings, Name};
use crate::dialect::made;
use crate::gate::Committed;

/// Waits for the id in an answer of which it is known whose it will be.
pub struct Binder {
    bindings: Bindings,
    dialect: Dialect,
    key: KeyId,
    channel: ChannelId,
    model: Model,
    ids: Ids,
}

/// Where the id is looked for.
enum Ids {
    Stream(made::InStream),
    Document(made::InDocument),
}

impl Binder {
    /// A binder for an answer of this channel to this key's request.
    pub fn new(bindings: &Bindings, dialect: Dialect, key: KeyId, channel: ChannelId, model: Model) -> Self {
        let ids = Ids::Document(made::InDocument::default());
        Binder { bindings: bindings.clone(), dialect, key, channel, model, ids }
    }

    /// Binds what the held bytes of an answer show. Returns itself where the id must be further on in it.
    pub fn begin(mut self, committed: &Committed) -> Option<Self> {
        let is_over = if committed.tap.is_stream() {
            self.ids = Ids::Stream(made::InStream::default());
            committed.held.iter().any(|chunk| self.on_bytes(chunk))
        } else {
            match committed.held.as_slice() {
                [one] => self.on_bytes(one),
                many => self.on_bytes(&many.concat()),
            }
        };
        if committed.whole && !is_over {
            self.warn();
        }
        (!is_over && !committed.whole).then_some(self)
    }

    /// Takes the next bytes of an answer; returns whether there is nothing more to look for.
    pub fn on_bytes(&mut self, chunk: &[u8]) -> bool {
        let (found, has_given_up) = match &mut self.ids {
            Ids::Stream(ids) => (ids.on_bytes(chunk), ids.has_given_up()),
            Ids::Document(ids) => (ids.on_bytes(chunk), ids.has_given_up()),
        };
        let is_over = found.is_some() || has_given_up;
        if let Some(id) = found {
            self.bind(id);
        } else if is_over {
            self.warn();
        }
        is_over
    }

    fn warn(&self) {
        tracing::warn!(channel.id = %self.channel, "an answer names no id of what it makes");
    }

    fn bind(&self, id: String) {
        if id.len() > BINDING_ID_BYTES_MAX {
            tracing::warn!(channel.id = %self.channel, bytes = id.len(), "an id is too long to be bound");
            return;
        }
        let name = Name { dialect: self.dialect, id: id.into(), key: self.key.clone() };
        self.bindings.bind(name, self.channel.clone(), self.model.clone());
    }
}
