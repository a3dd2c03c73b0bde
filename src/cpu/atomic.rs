// SPDX-License-Identifier: MPL-2.0
//! Minima, maxima and sums that several threads update in any order. One thread `alone` uses plain operations, because
//! atomic ones take several times as long.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lowers a value to another, if that is lower.
#[inline(always)]
pub(crate) fn lower(value: &AtomicU64, to: u64, alone: bool) {
    let now = value.load(Relaxed);
    if alone {
        value.store(now.min(to), Relaxed);
    } else if to < now {
        value.fetch_min(to, Relaxed);
    }
}

/// Raises a value to another, if that is higher.
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
