// SPDX-License-Identifier: MPL-2.0
// The package in browsers and their workers: fetches the WebAssembly file beside it, and starts threads where that is allowed.
import { start } from "./start.js";

const answer = await fetch(new URL("./superpixels.wasm", import.meta.url));
if (!answer.ok) throw new Error(`${answer.url} could not be fetched: ${answer.status}`);
await start(await answer.arrayBuffer());

export * from "./api.js";
