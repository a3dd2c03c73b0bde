// SPDX-License-Identifier: MPL-2.0
//! Code that all fuzz targets share: values drawn from the fuzzer's bytes, and checks of a frame's results.

pub mod check;
pub mod draw;
pub mod pool;
pub mod stream;

#[path = "../../tests/pictures/mod.rs"]
pub mod pictures;
