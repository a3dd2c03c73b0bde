// SPDX-License-Identifier: MPL-2.0
//! Items that are used again when their last holder lets go, on whichever thread and however late that is.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

struct Shared<T> {
    free: Mutex<Vec<T>>,
    lent: AtomicUsize,
}

/// Free items. Clones are the same pool. Items that come back after the last of them has ended are dropped.
pub(crate) struct Pool<T>(Arc<Shared<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Arc::new(Shared { free: Mutex::default(), lent: AtomicUsize::new(0) }))
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Pool<T> {
    /// A free item, if there is one that fits; one that does not is dropped.
    pub fn take(&self, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        self.0.free.lock().unwrap().pop().filter(fits)
    }

    /// Lends an item, which may be new.
    pub fn lend(&self, item: T) -> Lent<T> {
        self.0.lent.fetch_add(1, Ordering::Relaxed);
        Lent { item: Some(item), pool: Arc::downgrade(&self.0) }
    }

    /// How many items are lent.
    pub fn lent(&self) -> usize {
        self.0.lent.load(Ordering::Relaxed)
    }
}

/// An item of a pool, which gets it back in the end.
pub(crate) struct Lent<T> {
    /// There until `drop` takes it.
    item: Option<T>,
    pool: Weak<Shared<T>>,
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.item {
            Some(item) => item,
            None => unreachable!("only `drop` takes the item"),
        }
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.item {
            Some(item) => item,
            None => unreachable!("only `drop` takes the item"),
        }
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.lent.fetch_sub(1, Ordering::Relaxed);
            pool.free.lock().unwrap().extend(self.item.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_and_are_dropped_where_they_do_not_fit() {
        let item = Arc::new(());
        let pool = Pool::default();
        let lent = pool.lend(item.clone());
        assert_eq!((pool.lent(), Arc::strong_count(&lent)), (1, 2));
        drop(lent);
        assert_eq!((pool.lent(), Arc::strong_count(&item)), (0, 2));
        assert!(pool.clone().take(|_| true).is_some_and(|taken| Arc::ptr_eq(&taken, &item)));
        assert!(pool.take(|_| true).is_none() && Arc::strong_count(&item) == 1);
        drop(pool.lend(item.clone()));
        assert!(pool.take(|_| false).is_none() && Arc::strong_count(&item) == 1);
        let late = pool.lend(item.clone());
        drop(pool);
        assert_eq!(Arc::strong_count(&item), 2);
        drop(late);
        assert_eq!(Arc::strong_count(&item), 1);
    }
}
