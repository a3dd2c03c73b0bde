// SPDX-License-Identifier: MPL-2.0
//! Threads of a build with shared memory: workers that the page has started lend themselves to rayon's global pool.

#[cfg(target_feature = "atomics")]
mod shared {
    use std::sync::{Condvar, Mutex, PoisonError};

    use rayon::{ThreadBuilder, ThreadPoolBuilder};
    use wasm_bindgen::prelude::*;

    /// Threads of the pool that no worker has taken yet.
    static WAITING: Mutex<Vec<ThreadBuilder>> = Mutex::new(Vec::new());
    /// There is one more.
    static ONE_MORE: Condvar = Condvar::new();

    /// Starts the pool, and waits until so many workers run its threads: they have to have called `run_thread` or be about to.
    #[wasm_bindgen(js_name = startThreads, skip_typescript)]
    pub fn start_threads(count: usize) -> Result<(), JsError> {
        let pool = ThreadPoolBuilder::new().num_threads(count).spawn_handler(|thread| {
            WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
            ONE_MORE.notify_one();
            Ok(())
        });
        Ok(pool.build_global()?)
    }

    /// Waits for a thread of the pool and runs it, as long as the pool lives, which is as long as the memory does.
    #[wasm_bindgen(js_name = runThread, skip_typescript)]
    pub fn run_thread() {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = loop {
            match waiting.pop() {
                Some(thread) => break thread,
                None => waiting = ONE_MORE.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(waiting);
        thread.run();
    }

    /// How many threads share work.
    #[wasm_bindgen(skip_typescript)]
    pub fn threads() -> usize {
        rayon::current_num_threads()
    }
}

#[cfg(not(target_feature = "atomics"))]
mod alone {
    use wasm_bindgen::prelude::*;

    /// How many threads share work.
    #[wasm_bindgen(skip_typescript)]
    pub fn threads() -> usize {
        1
    }
}
