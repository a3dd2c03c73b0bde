// SPDX-License-Identifier: MPL-2.0
#![allow(unused_doc_comments)]
//! Superpixel segmentation of video.
//!
//! The library knows frames, not streams. What a user wants is a [`params::Params`]; with the frame size it becomes a
//! [`plan::Plan`], once; an [`engine::Engine`] runs the plan for every frame on a [`backend::Backend`]. Stages, in the
//! order of a frame: [`ingest`] packs colors, [`algo`] clusters, [`post`] connects, measures and draws. The CPU
//! backend ([`cpu`]) defines the result. [`wide`] has label maps of more regions than 16 bits name. With the feature `gst`
//! the crate is also a GStreamer plugin.
//!
//! ```
//! use gstsuperpixel::cpu::Cpu;
//! use gstsuperpixel::engine::Engine;
//! use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
//! use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
//! use gstsuperpixel::plan::Plan;
//!
//! # fn main() -> gstsuperpixel::error::Result<()> {
//! let geometry = Geometry::new(320, 240)?;
//! let info = FrameInfo::new(geometry, PixelFormat::Rgb);
//! let (width, stride) = (320, 3 * 320);
//!
//! // Once for a size, a format and parameters. `temporal` is for clips: regions then keep their identities.
//! let params = Params { superpixels: 300, temporal: true, ..Params::default() };
//! let mut engine = Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?;
//! let mut map = vec![0; geometry.pixels()];
//!
//! // For each frame:
//! # let mut pixels = vec![90; stride * 240];
//! # pixels[..stride * 100].fill(200);
//! let mut labels = Labels::new(geometry, &mut map, width)?;
//! let outputs = Outputs { table: true, mean_color: true, ..Outputs::default() };
//! let regions = engine.segment(&Frame::new(info, &[&pixels], &[stride])?, &mut labels, outputs)?;
//! for region in &regions.table {
//!     println!("{}: {} px around {:?}", region.track_id, region.area, region.centroid);
//! }
//! # assert_eq!(regions.table.len(), regions.count as usize);
//!
//! // And to draw on it:
//! let drawing = Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries::default()) };
//! engine.draw(&mut FrameMut::new(info, [&mut pixels[..]], &[stride])?, &labels, &drawing)?;
//! # assert!(map.iter().any(|&label| label > 100));
//! # Ok(())
//! # }
//! ```
//!
//! `cuda::Cuda` is the other backend; its frames and label planes live on the device.

pub mod algo;
pub mod any_engine;
pub mod backend;
#[cfg(feature = "cuda")]
pub mod batcher;
pub mod buffers;
pub mod color;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod engine;
pub mod error;
pub mod events;
pub mod grid;
pub mod image;
pub mod ingest;
pub mod objects;
mod outputs;
mod parallel;
pub mod parameter;
pub mod params;
pub mod picture_params;
pub mod plan;
pub mod post;
pub mod record;
pub mod regions;
mod stage_times;
mod stages;
pub mod temporal;
pub mod vectors;
pub mod wide;

#[cfg(feature = "gst")]
mod analytics;
#[cfg(feature = "gst")]
mod bad_buffers;
#[cfg(feature = "gst")]
mod element;
#[cfg(feature = "gst")]
mod label_element;
#[cfg(feature = "gst")]
mod lazy_memory;
#[cfg(feature = "gst")]
mod mask;
#[cfg(feature = "gst")]
pub mod meta;
#[cfg(feature = "gst")]
mod objects_element;
#[cfg(any(feature = "gst", feature = "cuda"))]
mod run_time;
#[cfg(feature = "gst")]
mod video_map;

#[cfg(feature = "gst")]
pub use plugin::plugin_register_static;

#[cfg(feature = "gst")]
#[allow(missing_docs)]
mod plugin {
    /// plugin-superpixel:
    ///
    /// Since: 0.1
    fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
        crate::meta::register();
        crate::element::register(plugin)?;
        crate::label_element::register(plugin)?;
        crate::objects_element::register(plugin)
    }

    gst::plugin_define!(
        superpixel,
        env!("CARGO_PKG_DESCRIPTION"),
        plugin_init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        "MPL-2.0",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        env!("PACKAGE_ORIGIN"),
        env!("BUILD_REL_DATE")
    );
}
