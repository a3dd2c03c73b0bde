// SPDX-License-Identifier: MPL-2.0
// Starts the WebAssembly and its threads in browsers and their workers.
import { begin } from "./engine.js";

/** Workers that nobody else holds: an engine may end one that waits. */
const threads = [];

function run(shared) {
  // Bundlers look for exactly this.
  const thread = new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "superpixels thread" });
  threads.push(thread);
  return new Promise((resolve, reject) => {
    const failed = (event) => {
      event.preventDefault();
      reject(new Error(event.message ?? "is thread.js beside start.js?"));
    };
    thread.addEventListener("error", failed);
    thread.addEventListener("message", () => {
      thread.removeEventListener("error", failed);
      resolve();
    }, { once: true });
    thread.postMessage({ ...shared, failures: globalThis.SUPERPIXELS_FAILURES });
  });
}

const end = () => threads.splice(0).forEach((thread) => thread.terminate());

export const start = (bytes) => begin(bytes, navigator.hardwareConcurrency ?? 1, run, end);
