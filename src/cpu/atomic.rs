// SPDX-License-Identifier: MPL-2.0
//! What several threads add up or agree on, in any order. One thread `alone` needs no atomic operations, which take several times as
//! long as plain ones.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lowers a value to another, if that is less.
#[inline(always)]
pub(crate) fn lower(value: &AtomicU64, to: u64, alone: bool) {
    let now = value.load(Relaxed);
    if alone {
        value.store(now.min(to), Relaxed);
    } else if to < now {
        value.fetch_min(to, Relaxed);
    }
}

/// Raises a value to another, if that is more.
#[inline(always)]
pub(crate) fn raise(value: &AtomicU64, to: u64, alone: bool) {
    let now = value.load(Relaxed);
    if alone {
        value.store(now.max(to), Relaxed);
    } else if to > now {
        value.fetch_max(to, Relaxed);
    }
}

/// Adds to a value.
#[inline(always)]
pub(crate) fn add(value: &AtomicU64, more: u64, alone: bool) {
    if alone {
        value.store(value.load(Relaxed) + more, Relaxed);
    } else {
        value.fetch_add(more, Relaxed);
    }
}
