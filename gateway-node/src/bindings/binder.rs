//! Binds what an answer shows before the bytes that show it go on to the caller.

use bytes::Bytes;
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
    ids: made::InStream,
}

impl Binder {
    /// A binder for an answer of this channel to this key's request.
    pub fn new(bindings: &Bindings, dialect: Dialect, key: KeyId, channel: ChannelId, model: Model) -> Self {
        let ids = made::InStream::default();
        Binder { bindings: bindings.clone(), dialect, key, channel, model, ids }
    }

    /// Binds what the held bytes of an answer show. Returns itself where the id must be further on in it.
    pub fn begin(mut self, committed: &Committed) -> Option<Self> {
        if !committed.tap.is_stream() {
            self.document(&committed.held);
            return None;
        }
        let is_over = committed.held.iter().any(|chunk| self.on_bytes(chunk));
        (!is_over).then_some(self)
    }

    fn document(&self, held: &[Bytes]) {
        let id = match held {
            [one] => made::in_document(one),
            many => made::in_document(&many.concat()),
        };
        match id {
            Some(id) => self.bind(id),
            None => tracing::warn!(channel.id = %self.channel, "an answer names no id of what was made"),
        }
    }

    /// Takes the next bytes of a stream; returns whether there is nothing more to look for.
    pub fn on_bytes(&mut self, chunk: &[u8]) -> bool {
        let found = self.ids.on_bytes(chunk);
        let is_over = found.is_some() || self.ids.has_given_up();
        if let Some(id) = found {
            self.bind(id);
        } else if is_over {
            tracing::warn!(channel.id = %self.channel, "a stream names no id of what it makes");
        }
        is_over
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
