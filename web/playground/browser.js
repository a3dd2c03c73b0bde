// SPDX-License-Identifier: MPL-2.0
// Takes the place of the package's browser.js: the playground has its WebAssembly compressed, as simple servers do not compress.
import { start } from "./start.js";

async function unpacked(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} could not be fetched: ${answer.status}`);
  return new Response(answer.body.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

await start(await unpacked(new URL("./superpixels.wasm.deflated", import.meta.url)));

export * from "./api.js";
