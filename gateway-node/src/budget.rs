//! Bounds on what all requests together hold in memory. Each takes shares of a budget as it needs them, and a share goes
//! back when it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that may be held in one place of the process.
#[derive(Debug, Clone)]
pub struct Budget {
    held: Arc<AtomicUsize>,
    limit: usize,
}

/// A share of a budget.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Budget { held: Arc::default(), limit }
    }

    /// A share of nothing, which can grow.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// Bytes of all shares.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }
}

impl Share {
    /// Takes `bytes` more: they are there already. Says whether all shares are still within the budget.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let before = self.budget.held.fetch_add(bytes, Ordering::AcqRel);
        self.bytes += bytes;
        before + bytes <= self.budget.limit
    }

    /// Ties the share to `bytes`: it goes back with the last slice of them.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _share: self })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

struct Held<B> {
    bytes: B,
    _share: Share,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_shares_is_bounded_and_given_back() {
        let budget = Budget::new(100);
        let mut first = budget.share();
        assert!(first.grow(60) && first.grow(40));
        let mut second = budget.share();
        assert!(!second.grow(1));
        assert_eq!(budget.held(), 101);
        drop((first, second));
        assert_eq!(budget.held(), 0);
        assert!(budget.share().grow(100));
    }

    #[test]
    fn bytes_hold_their_share_until_the_last_slice_of_them_is_gone() {
        let budget = Budget::new(100);
        let mut share = budget.share();
        assert!(share.grow(100));
        let body = share.hold(vec![b'x'; 100]);
        let slice = body.slice(1..);
        drop(body);
        assert_eq!((budget.held(), slice.len()), (100, 99));
        drop(slice);
        assert_eq!(budget.held(), 0);
    }
}
