// SPDX-License-Identifier: MPL-2.0
// Which WebAssembly an engine can load: that of this package, which has SIMD, or that of the package superpixels-scalar.

// A module of one function: i32.const 0, i8x16.splat.
// prettier-ignore
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]);

export const hasSimd = WebAssembly.validate(SIMD);

/** Where the file without SIMD is. Bundlers do not see it: few pages have it. */
const BESIDE = "../superpixels-scalar/superpixels.wasm";
export const scalar = () => new URL(globalThis.SUPERPIXELS_SCALAR ?? BESIDE, import.meta.url);

/** The error of an engine without SIMD where that file is missing. */
export const refusal = (cause) =>
  new Error(
    "superpixels needs SIMD of WebAssembly, which this engine lacks (Chromium 96, Firefox 89, Safari 16.4 and Node 18 have it), or the " +
      "package superpixels-scalar beside it, which could not be loaded",
    { cause },
  );
