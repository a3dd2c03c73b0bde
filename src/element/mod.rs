// SPDX-License-Identifier: MPL-2.0
//! The element `superpixel`.

/**
 * SECTION:element-superpixel
 *
 * Segments every video frame into superpixels, attaches the label map as `GstSuperpixelMeta` and draws what
 * #GstSuperpixel:overlay asks for. With `overlay=none` no pixel of the stream is copied or touched.
 *
 * Frames are segmented by a CUDA device where one opens at start, else by the CPU; both give the same in every bit.
 * #GstSuperpixel:backend chooses, #GstSuperpixel:active-backend tells. Frames in `memory:CUDAMemory` stay on the device,
 * and so do label map, table and neighbors until somebody maps them.
 *
 * ## Example pipelines
 *
 * Boundaries on a live picture:
 * |[
 * gst-launch-1.0 autovideosrc ! videoconvert ! superpixel superpixel-size=24 ! videoconvert ! autovideosink
 * ]|
 * Abstraction by mean colors:
 * |[
 * gst-launch-1.0 videotestsrc pattern=ball ! superpixel overlay=mean-color ! videoconvert ! autovideosink
 * ]|
 * Quick shift, whose regions follow the picture alone and vary in size:
 * |[
 * gst-launch-1.0 videotestsrc ! superpixel algo=quickshift sigma=2 overlay=mean-color ! videoconvert ! autovideosink
 * ]|
 * Exact label maps as 16-bit PNG files:
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=5 ! superpixel overlay=none ! superpixellabels ! videoconvert ! pngenc ! multifilesink location=l%05d.png
 * ]|
 *
 * Since: 0.1
 */
use gst::glib;
use gst::prelude::*;

mod active;
mod controlled;
mod cpu;
#[cfg_attr(not(feature = "cuda"), path = "no_cuda.rs")]
mod cuda;
mod enums;
pub(crate) mod frame;
mod heap;
mod imp;
mod log;
mod mask;
mod mask_settings;
mod path;
mod properties;
mod settings;
mod stats;
mod task;

glib::wrapper! {
    /// Superpixel segmentation in place.
    pub struct Superpixel(ObjectSubclass<imp::Superpixel>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    for enumeration in enums::types() {
        enumeration.mark_as_plugin_api(gst::PluginAPIFlags::empty());
    }
    gst::Element::register(Some(plugin), "superpixel", gst::Rank::NONE, Superpixel::static_type())
}
