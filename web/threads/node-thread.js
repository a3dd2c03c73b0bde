// SPDX-License-Identifier: MPL-2.0
// A thread in Node: a worker with the memory of the one that started it.
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { initSync, runThread } from "./native.js";

initSync(workerData);
parentPort.postMessage("ready");
try {
  runThread();
} catch (error) {
  // Whoever waits for this thread would wait forever.
  writeSync(2, `superpixels-threads: a thread failed: ${error.message}\n`);
  process.kill(process.pid, "SIGABRT");
}
