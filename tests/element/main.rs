// SPDX-License-Identifier: MPL-2.0
//! The elements in pipelines, on the CPU where a test names no backend, and the programs around them.
#![cfg(feature = "gst")]

#[path = "../colors/mod.rs"]
mod colors;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod examples;

mod analytics;
mod bad_buffers;
mod colorimetry;
mod events;
mod exclusive;
mod formats;
mod gray16;
mod hierarchy;
mod leaks;
mod masks;
mod masks_of_metadata;
mod merge;
mod meta;
#[cfg(unix)]
mod outputs;
mod pipelines;
mod priors;
mod robustness;
mod streams;
mod superpixel;
mod superpixellabels;
mod superpixelobjects;
