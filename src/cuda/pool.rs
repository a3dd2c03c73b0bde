// SPDX-License-Identifier: MPL-2.0
//! Items that return to their pool when the last holder drops them, on any thread and at any time.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

struct Shared<T> {
    free: Mutex<Vec<T>>,
    lent: AtomicUsize,
}

/// A pool of free items. Clones share it. Items that return after the last clone was dropped are dropped.
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
    /// Takes a free item if it fits; drops one that does not.
    pub fn take(&self, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        self.0.free.lock().unwrap().pop().filter(fits)
    }

    /// Lends an item, which may be new.
    pub fn lend(&self, item: T) -> Lent<T> {
        self.0.lent.fetch_add(1, Ordering::Relaxed);
        Lent { item: Some(item), pool: Arc::downgrade(&self.0) }
    }

    /// Number of lent items.
    pub fn lent(&self) -> usize {
        self.0.lent.load(Ordering::Relaxed)
    }
}

/// An item that returns to its pool when it is dropped.
pub(crate) struct Lent<T> {
    /// `None` only in `drop`.
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
