// SPDX-License-Identifier: MPL-2.0
//! Thread pools, shared by all calls and segmenters with the same number of threads.

use std::sync::Mutex;

use gstsuperpixel::cpu::Cpu;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::exception;

struct Pool {
    process: u32,
    threads: u32,
    cpu: Cpu,
}

/// Pools that are kept while nothing uses them.
const MOST: usize = 4;

static POOLS: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// A pool of so many threads, at most one a core and 0 for as many, in this process.
///
/// A fork from Python holds the interpreter's lock, and so does whoever holds the lock here: a child never finds it locked.
pub fn pool(py: Python<'_>, threads: u32) -> PyResult<Cpu> {
    let process = std::process::id();
    let mut pools = POOLS.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(found) = pools.iter().find(|pool| pool.process == process && pool.threads == threads) {
        return Ok(found.cpu.clone());
    }
    let cpu = Cpu::within_machine(threads).map_err(exception)?;
    // Pools of a parent process are kept: their threads are not here, and dropping them would wait for these.
    if pools.iter().filter(|pool| pool.process == process).count() >= MOST
        && let Some(oldest) = pools.iter().position(|pool| pool.process == process)
    {
        pools.remove(oldest);
    }
    pools.push(Pool { process, threads, cpu: cpu.clone() });
    Ok(cpu)
}
