// SPDX-License-Identifier: MPL-2.0
//! The CPU backend: a thread pool and host memory. It defines every result, and none depends on the number of threads.

pub(crate) mod atomic;
pub(crate) mod chunk;
#[doc(hidden)]
pub mod level;
#[doc(hidden)]
pub mod memory;

use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::parameter::{About, Range};

/// Threads of the CPU backend; 0 takes all cores.
pub const THREADS: Range<u32> = Range {
    about: About::new(
        "threads",
        "Threads",
        "",
        "Threads of the CPU backend, at most one a core, whatever is set; active-backend says how many (0 = all cores)",
    )
    .at_start(),
    min: 0,
    max: 1024,
    default: 0,
};

/// The backend: host memory, and a pool that works on rows in parallel.
#[derive(Clone)]
pub struct Cpu {
    pool: Pool,
    /// Process id of the threads in the pool.
    process: u32,
}

impl Cpu {
    /// Starts a pool of exactly `threads` threads; 0 starts one per core. WebAssembly has the calling thread alone.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] if the number is out of range, another error if the system refuses to start threads.
    pub fn new(threads: u32) -> Result<Self> {
        let threads = THREADS.check(threads)? as usize;
        let pool = Pool::start(threads)
            .map_err(|e| Error::Backend { backend: "cpu", reason: format!("{e}; set fewer threads") })?;
        Ok(Self { pool, process: process() })
    }

    /// Like [`Cpu::new`], with at most one thread per core that this process may use. More gain nothing, and a number
    /// from an untrusted source must not slow a machine down.
    ///
    /// # Errors
    ///
    /// As for [`Cpu::new`].
    pub fn within_machine(threads: u32) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self::new(THREADS.check(threads)?.min(u32::try_from(cores).unwrap_or(u32::MAX)))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs work on the pool: parallel iterators inside of `work` use its threads.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.run(work)
    }

    /// Returns an error but in the process that started the threads. A forked process inherits the pool without its threads,
    /// and would wait for them forever.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == process() {
            return Ok(());
        }
        Err(Error::Backend { backend: "cpu", reason: "its threads are those of the process that this one was forked from; make an engine after the fork".into() })
    }
}

/// Id of this process. WebAssembly has no processes, and nothing that forks them.
fn process() -> u32 {
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
