// SPDX-License-Identifier: MPL-2.0
// A thread in browsers: a worker with the memory of the one that started it.
import { initSync, runThread } from "./native.js";

addEventListener(
  "message",
  ({ data: { failures, ...shared } }) => {
    initSync(shared);
    postMessage("ready");
    try {
      runThread();
    } catch (error) {
      // The worker that waits for this thread can hear of nothing: the page ends it.
      if (!failures) throw error;
      new BroadcastChannel(failures).postMessage(error.message);
    }
  },
  { once: true },
);
