// SPDX-License-Identifier: MPL-2.0
// Engines without SIMD take the package superpixels-scalar. SUPERPIXEL_WEB names the unpacked package.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

test("an engine without SIMD takes the package superpixels-scalar, or is told of it", () => {
  const module = JSON.stringify(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "node.js")).href);
  const load = (before) => {
    const code = `${before}; WebAssembly.validate = () => false; import(${module}).then(() => console.log("loaded"), (error) => console.log(error.message));`;
    return execFileSync(process.execPath, ["-e", code], { encoding: "utf8" });
  };
  assert.equal(load(""), "loaded\n");
  const scalar = join(process.env.SUPERPIXEL_WEB, "../superpixels-scalar/superpixels.wasm");
  assert.equal(load(`globalThis.SUPERPIXELS_SCALAR = ${JSON.stringify(pathToFileURL(scalar).href)}`), "loaded\n");
  assert.match(load('globalThis.SUPERPIXELS_SCALAR = "file:///nothing.wasm"'), /^superpixels needs SIMD .*, or the package superpixels-scalar beside it/);
  const features = (file) => {
    const [section] = WebAssembly.Module.customSections(new WebAssembly.Module(readFileSync(file)), "target_features");
    return Buffer.from(section).toString("latin1");
  };
  assert.doesNotMatch(features(scalar), /simd/);
  assert.match(features(join(process.env.SUPERPIXEL_WEB, "superpixels.wasm")), /\+.simd128/s);
});
