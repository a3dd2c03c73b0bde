// SPDX-License-Identifier: MPL-2.0
//! Sources, documents and lists say what is so.

#[cfg(feature = "gst")]
#[path = "../common/mod.rs"]
mod common;

mod comments;
#[cfg(feature = "gst")]
mod documents;
#[cfg(all(feature = "gst", feature = "cuda"))]
mod interface;
mod layers;
#[cfg(feature = "gst")]
mod lists;
mod records;
