// SPDX-License-Identifier: MPL-2.0
// The package in browsers and their workers: fetches the WebAssembly file beside it, or that of superpixels-scalar.
import { hasSimd, refusal, scalar } from "./engine.js";
import init from "./native.js";

async function fetchScalar() {
  const answer = await fetch(scalar()).catch((error) => {
    throw refusal(error);
  });
  if (!answer.ok) throw refusal(new Error(`${answer.url}: ${answer.status}`));
  return answer;
}

await init({ module_or_path: hasSimd ? new URL("./superpixels.wasm", import.meta.url) : await fetchScalar() });

export * from "./api.js";
