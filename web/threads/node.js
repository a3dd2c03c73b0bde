// SPDX-License-Identifier: MPL-2.0
// The package in Node: reads the WebAssembly file beside it, and starts threads.
import { readFile } from "node:fs/promises";
import os from "node:os";
import { Worker } from "node:worker_threads";
import { begin } from "./engine.js";

const threads = [];

function run(shared) {
  const thread = new Worker(new URL("./node-thread.js", import.meta.url), { workerData: shared, execArgv: [] });
  threads.push(thread);
  return new Promise((resolve, reject) => {
    thread.once("message", () => {
      // A program ends without waiting for it.
      thread.unref();
      resolve();
    });
    thread.once("error", reject);
  });
}

const cores = os.availableParallelism?.() ?? os.cpus().length;
await begin(await readFile(new URL("./superpixels.wasm", import.meta.url)), cores, run, () => threads.splice(0).forEach((thread) => thread.terminate()));

export * from "./api.js";
