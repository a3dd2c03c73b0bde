// SPDX-License-Identifier: MPL-2.0
//! The CUDA backend, alone and in the element, against the CPU backend.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.
#![cfg(feature = "cuda")]

#[path = "../both/mod.rs"]
mod both;
#[path = "../changes/mod.rs"]
mod changes;
#[cfg(feature = "gst")]
#[path = "../colors/mod.rs"]
mod colors;
#[cfg(feature = "gst")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../device/mod.rs"]
mod device;
#[path = "../oracle/mod.rs"]
mod oracle;
#[path = "../pictures/mod.rs"]
mod pictures;

mod abstraction;
mod arrays;
#[cfg(feature = "gst")]
mod async_depth;
#[cfg(feature = "gst")]
mod bad_buffers;
mod batches;
mod clips;
#[cfg(feature = "gst")]
mod colorimetry;
mod context;
#[cfg(feature = "gst")]
mod decoder;
#[cfg(feature = "gst")]
mod element;
#[cfg(feature = "gst")]
mod element_masks;
#[cfg(feature = "gst")]
mod faults;
#[cfg(feature = "gst")]
mod groups;
mod hierarchy;
mod kept;
mod masks;
mod ownership;
mod parity;
mod priors;
mod stages;
mod streams;
mod temporal;
mod wide;
#[cfg(feature = "gst")]
mod zero_copy;
