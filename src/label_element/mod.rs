// SPDX-License-Identifier: MPL-2.0
//! The element `superpixellabels`.

/**
 * SECTION:element-superpixellabels
 *
 * Replaces every frame by the label map that `superpixel` attached to it, as 16-bit gray of the same size
 * (`GRAY16_LE`, or `GRAY16_BE` where downstream takes only that); so exact label maps can be stored or shown.
 *
 * ## Example pipelines
 *
 * One 16-bit PNG file a frame:
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=5 ! superpixel overlay=none ! superpixellabels ! videoconvert ! pngenc ! multifilesink location=l%05d.png
 * ]|
 * Lossless video of label maps:
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! superpixel overlay=none ! superpixellabels ! avenc_ffv1 ! matroskamux ! filesink location=labels.mkv
 * ]|
 * With the smooth outlines that `superpixel overlay=abstraction` draws:
 * |[
 * gst-launch-1.0 videotestsrc ! superpixel overlay=none regions=120 ! superpixellabels outline-smoothness=2 ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
use gst::glib;
use gst::prelude::*;

mod imp;
mod smooth;

/// Handling of frames without a label map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelLabelsOnMissing")]
#[non_exhaustive]
pub enum OnMissing {
    /// The stream ends.
    #[default]
    #[enum_value(name = "Error: end the stream with an error", nick = "error")]
    Error,
    /// The frame is left out.
    #[enum_value(name = "Drop: leave the frame out", nick = "drop")]
    Drop,
    /// A map of zeros.
    #[enum_value(name = "Zero: write a map of zeros", nick = "zero")]
    Zero,
}

glib::wrapper! {
    /// Converts frames to label maps.
    pub struct SuperpixelLabels(ObjectSubclass<imp::SuperpixelLabels>)
        @extends gst_video::VideoFilter, gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    OnMissing::static_type().mark_as_plugin_api(gst::PluginAPIFlags::empty());
    gst::Element::register(Some(plugin), "superpixellabels", gst::Rank::NONE, SuperpixelLabels::static_type())
}
