// SPDX-License-Identifier: MPL-2.0
#![allow(unused_doc_comments)]
//! Superpixel segmentation of video.
//!
//! The library knows frames, not streams. What a user wants is a [`params::Params`]; with the frame size it becomes a
//! [`plan::Plan`], once; an [`engine::Engine`] runs the plan for every frame on a [`backend::Backend`]. Stages, in the
//! order of a frame: [`ingest`] packs colors, [`algo`] clusters, [`post`] connects, measures and draws. The CPU
//! backend ([`cpu`]) defines the result. With the feature `gst` the crate is also a GStreamer plugin.

pub mod algo;
pub mod backend;
pub mod color;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod engine;
pub mod error;
pub mod image;
pub mod ingest;
pub mod params;
pub mod plan;
pub mod post;
pub mod regions;

#[cfg(feature = "gst")]
mod element;
#[cfg(feature = "gst")]
mod label_element;
#[cfg(feature = "gst")]
pub mod meta;

#[cfg(feature = "gst")]
pub use plugin::plugin_register_static;

#[cfg(feature = "gst")]
#[allow(missing_docs)]
mod plugin {
    /// plugin-superpixel:
    ///
    /// Since: plugins-rs-0.1
    fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
        crate::meta::register();
        crate::element::register(plugin)?;
        crate::label_element::register(plugin)
    }

    gst::plugin_define!(
        superpixel,
        env!("CARGO_PKG_DESCRIPTION"),
        plugin_init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        "MPL-2.0",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_REPOSITORY"),
        env!("BUILD_REL_DATE")
    );
}
