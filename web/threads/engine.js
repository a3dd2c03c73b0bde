// SPDX-License-Identifier: MPL-2.0
// Memory that threads share, and the threads: workers that run the same WebAssembly.
import { initSync, startThreads } from "./native.js";

const PAGE = 65536;
/** Most memory, in pages, the next where an engine refuses one. The first is the linker's, in packaging/build.sh. */
const MOST = [2 ** 31, 2 ** 30, 2 ** 29].map((bytes) => bytes / PAGE);
/** Pages at the start: more than the module asks for. */
const FIRST = 64;
/** Most threads that are started without being asked for: docs/web.md has what so many gain; more were not measured. */
const ENOUGH = 8;
const LIMIT = 64;

function sharedMemory() {
  let refused;
  for (const maximum of MOST) {
    try {
      return new WebAssembly.Memory({ initial: FIRST, maximum, shared: true });
    } catch (error) {
      refused = error;
    }
  }
  throw new Error("superpixels-threads needs memory of WebAssembly that is shared, which this engine did not give; the package superpixels does not", {
    cause: refused,
  });
}

/** Whether this thread may wait for others: a window's may not, and without isolation there is nothing to wait with. */
function mayWait() {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1);
    return true;
  } catch {
    return false;
  }
}

/** How many threads to start: as `globalThis.SUPERPIXELS_THREADS` says, or one per core. */
function wanted(cores) {
  const asked = globalThis.SUPERPIXELS_THREADS ?? Math.min(cores, ENOUGH);
  if (!Number.isInteger(asked) || asked < 1 || asked > LIMIT) throw new RangeError(`threads is a whole number from 1 to ${LIMIT}, got ${asked}`);
  return mayWait() ? asked : 1;
}

/**
 * Loads the WebAssembly and starts its threads. `run` starts a worker that has the module and the memory, and keeps a promise once
 * that is about to call `runThread`; `end` ends all that it has started.
 */
export async function begin(bytes, cores, run, end) {
  const count = wanted(cores);
  const shared = { module: await WebAssembly.compile(bytes), memory: sharedMemory() };
  initSync(shared);
  // The one thread is this one.
  if (count === 1) return;
  try {
    await Promise.all(Array.from({ length: count }, () => run(shared)));
  } catch (error) {
    end();
    console.warn(`superpixels-threads works in one thread, as others could not be started: ${error.message}`);
    return;
  }
  startThreads(count);
}
