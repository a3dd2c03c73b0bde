// SPDX-License-Identifier: MPL-2.0
// Says so where an engine cannot load the WebAssembly, which is the only one.

// A module of one function: i32.const 0, i8x16.splat.
// prettier-ignore
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]);

if (!WebAssembly.validate(SIMD))
  throw new Error(
    "superpixels needs SIMD of WebAssembly, which this engine lacks: Chromium 91, Firefox 89, Safari 16.4, Node 18 and later have it",
  );
