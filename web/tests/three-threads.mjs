// SPDX-License-Identifier: MPL-2.0
// Loaded before a test: the package superpixels-threads starts so many threads, however many cores there are.
globalThis.SUPERPIXELS_THREADS = 3;
