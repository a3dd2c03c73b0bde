// SPDX-License-Identifier: MPL-2.0
//! What a device and a process hold after many starts. Apart from other tests of the device, which would be counted, too; here one
//! runs at a time.
#![cfg(all(feature = "gst", feature = "cuda"))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../device/mod.rs"]
mod device;

use std::sync::{Mutex, MutexGuard, PoisonError};

mod cycles;
mod memory;

/// Held by the test that runs.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
