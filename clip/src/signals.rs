// SPDX-License-Identifier: MPL-2.0
//! Signals that end the program: what it has begun to write goes first.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::fault::Result;

/// Removes partial outputs when a signal comes that would end the program, and then lets it do so.
///
/// # Errors
///
/// No handler can be set.
pub fn watch() -> Result<()> {
    let ignored = ignored();
    // A signal that is ignored at start, as under nohup, stays ignored.
    let ending = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(ending)?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            superpixel_output::abandon();
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// The signals that this process ignores, a bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
