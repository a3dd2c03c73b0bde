// SPDX-License-Identifier: MPL-2.0
// The package in Node: reads the WebAssembly file beside it, or that of superpixels-scalar, wherever it was installed.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { hasSimd, refusal, scalar } from "./engine.js";
import { initSync } from "./native.js";

async function readScalar() {
  try {
    if (globalThis.SUPERPIXELS_SCALAR) return await readFile(scalar());
    return await readFile(createRequire(import.meta.url).resolve("superpixels-scalar/superpixels.wasm"));
  } catch (error) {
    throw refusal(error);
  }
}

initSync({ module: hasSimd ? await readFile(new URL("./superpixels.wasm", import.meta.url)) : await readScalar() });

export * from "./api.js";
