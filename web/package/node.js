// SPDX-License-Identifier: MPL-2.0
// The package in Node: reads the WebAssembly file beside it.
import { readFile } from "node:fs/promises";
import "./simd.js";
import { initSync } from "./native.js";

initSync({ module: await readFile(new URL("./superpixels.wasm", import.meta.url)) });

export * from "./api.js";
