// SPDX-License-Identifier: MPL-2.0
//! The element `superpixelobjects`.

/**
 * SECTION:element-superpixelobjects
 *
 * Follows objects through a stream that `superpixel` has segmented: boxes become the regions of an object, which is found again on
 * every frame until it is lost. Boxes come from detectors in front of the element, as regions of interest or as objects of GStreamer's
 * analytics metadata, on any frame; or from an application, by #GstSuperpixelObjects:objects and the signals
 * #GstSuperpixelObjects::add-object, #GstSuperpixelObjects::add-point, #GstSuperpixelObjects::add-mask, #GstSuperpixelObjects::update-object and
 * #GstSuperpixelObjects::remove-object.
 *
 * Each object is attached as a region of interest of type `superpixel-object`, the object of each region as the field `objects` of
 * `GstSuperpixelMeta`, and with GStreamer 1.26 or newer both as analytics metadata with a mask. Pixels are touched only by
 * #GstSuperpixelObjects:overlay. The element `superpixel` has to attach tables: `neighbors=true`, and `temporal` and `region-table` as
 * they are by default.
 *
 * ## Example pipelines
 *
 * An object that is in a box in the first frame, before a dark background:
 * |[
 * gst-launch-1.0 videotestsrc pattern=ball ! superpixel overlay=none neighbors=true ! superpixelobjects objects=20,20,80,80 overlay=background ! videoconvert ! autovideosink
 * ]|
 * The objects of a detector as 16-bit gray, with the id of the object in each pixel:
 * |[
 * gst-launch-1.0 ... ! superpixel overlay=none neighbors=true ! superpixelobjects ! superpixellabels objects=true ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
use gst::glib;
use gst::prelude::*;

mod background;
mod blur;
mod given_mask;
mod imp;
mod requests;
mod state;

/// The drawing on frames with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelObjectsOverlay")]
#[non_exhaustive]
pub enum ObjectsOverlay {
    /// Pixels stay untouched.
    #[default]
    #[enum_value(name = "None: pixels stay untouched", nick = "none")]
    None,
    /// A color over the background.
    #[enum_value(name = "Background: background-color over all that is in no object", nick = "background")]
    Background,
    /// The background in mean colors.
    #[enum_value(name = "Mean color: regions that are in no object in their mean color", nick = "mean-color")]
    MeanColor,
    /// The background blurred.
    #[enum_value(
        name = "Blur: all that is in no object is blurred, and objects do not bleed into it",
        nick = "blur"
    )]
    Blur,
}

/// Handling of frames that no object can be found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelObjectsOnMissing")]
#[non_exhaustive]
pub enum ObjectsOnMissing {
    /// The stream ends.
    #[default]
    #[enum_value(name = "Error: end the stream with an error", nick = "error")]
    Error,
    /// The frame passes as it is.
    #[enum_value(name = "Pass: let the frame pass as it is; the first one is a warning", nick = "pass")]
    Pass,
}

glib::wrapper! {
    /// Follows objects on the regions of frames.
    pub struct SuperpixelObjects(ObjectSubclass<imp::SuperpixelObjects>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    for enumeration in [ObjectsOverlay::static_type(), ObjectsOnMissing::static_type()] {
        enumeration.mark_as_plugin_api(gst::PluginAPIFlags::empty());
    }
    let kind = SuperpixelObjects::static_type();
    gst::Element::register(Some(plugin), "superpixelobjects", gst::Rank::NONE, kind)
}
