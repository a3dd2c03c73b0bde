// SPDX-License-Identifier: MPL-2.0
// Loaded before a test: to the package, which validates nothing else, the engine is one without SIMD.
WebAssembly.validate = () => false;
