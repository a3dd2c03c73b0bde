// SPDX-License-Identifier: MPL-2.0
//! Returns freed memory of the C library's heap to the system.
//!
//! glibc keeps freed planes in the arena of the thread that allocated them. A stream that changes its size or settings for hours
//! would hold several times the memory that it uses.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shortest time between two trims while streams run: in a process with 100,000 holes in its heap one takes 40 ms.
const INTERVAL: Duration = Duration::from_secs(10);

/// Time of this process's last trim.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Trims the heap after an engine was replaced, unless the last trim was less than [`INTERVAL`] ago.
pub(super) fn trim_sometimes() {
    let now = Instant::now();
    {
        let mut last = LAST.lock().unwrap();
        if last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        *last = Some(now);
    }
    release();
}

/// Trims the heap after a stream was stopped.
pub(super) fn trim() {
    *LAST.lock().unwrap() = Some(Instant::now());
    release();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn release() {
    // SAFETY: the function has no preconditions; the C library locks its arenas.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries than glibc lack this call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn release() {}
