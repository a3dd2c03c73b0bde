// SPDX-License-Identifier: MPL-2.0
// The package in browsers and their workers: fetches the WebAssembly file beside it.
import "./simd.js";
import init from "./native.js";

await init({ module_or_path: new URL("./superpixels.wasm", import.meta.url) });

export * from "./api.js";
