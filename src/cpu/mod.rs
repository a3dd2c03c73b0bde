// SPDX-License-Identifier: MPL-2.0
//! The CPU backend: a pool of threads and memory of the host. It defines every result; no result depends on its threads.

pub(crate) mod atomic;
pub(crate) mod chunk;
#[doc(hidden)]
pub mod level;
#[doc(hidden)]
pub mod memory;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::range::Range;

/// Threads of the CPU backend; 0 takes all cores.
pub const THREADS: Range<u32> =
    Range { name: "threads", min: 0, max: 1024, default: 0, allowed: "0 to 1024" };

/// Host memory, rows in parallel.
#[derive(Clone)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    /// The process that the threads of the pool are in.
    process: u32,
}

impl Cpu {
    /// Starts a pool of `threads` threads, whatever the machine has; 0 takes one for each core.
    ///
    /// # Errors
    ///
    /// A number out of range, or threads that the system refuses.
    pub fn new(threads: u32) -> Result<Self> {
        let threads = THREADS.check(threads)? as usize;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("superpixel{i}"))
            .build()
            .map_err(|e| Error::Backend { backend: "cpu", reason: format!("{e}; set fewer threads") })?;
        Ok(Self { pool: Arc::new(pool), process: std::process::id() })
    }

    /// As [`Cpu::new`], with at most one thread for each core that this process may use: more of them gain nothing, and a number that
    /// comes from outside must not be able to slow a machine down.
    ///
    /// # Errors
    ///
    /// Those of [`Cpu::new`].
    pub fn within_machine(threads: u32) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self::new(THREADS.check(threads)?.min(u32::try_from(cores).unwrap_or(u32::MAX)))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs work on the pool: what is parallel in it, by rayon, runs on these threads.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    /// Whether this process is the one that the threads are in. One that is forked inherits the pool without its threads, and would
    /// wait for them for ever.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }
}
