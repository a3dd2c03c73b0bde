// SPDX-License-Identifier: MPL-2.0
//! GStreamer's controller, whose library has no bindings here.

use gst::glib;
use gst::prelude::*;

#[link(name = "gstcontroller-1.0")]
unsafe extern "C" {
    fn gst_interpolation_control_source_new() -> *mut gst::ffi::GstControlSource;
    fn gst_timed_value_control_source_set(
        source: *mut gst::ffi::GstControlSource,
        time: u64,
        value: f64,
    ) -> i32;
    fn gst_direct_control_binding_new_absolute(
        object: *mut gst::ffi::GstObject,
        property: *const std::ffi::c_char,
        source: *mut gst::ffi::GstControlSource,
    ) -> *mut gst::ffi::GstControlBinding;
}

/// Lets a property follow points in stream time, each holding until the next.
pub fn control(element: &gst::Element, property: &std::ffi::CStr, points: &[(u64, f64)]) {
    use glib::translate::{ToGlibPtr, from_glib_full, from_glib_none};
    // SAFETY: the constructors return a full and a floating reference; the pointers live across the calls.
    let (binding, _source): (gst::ControlBinding, gst::ControlSource) = unsafe {
        let source: gst::ControlSource = from_glib_full(gst_interpolation_control_source_new());
        for (frame, value) in points {
            assert_ne!(
                gst_timed_value_control_source_set(source.to_glib_none().0, frame * 40_000_000, *value),
                0
            );
        }
        let object: *mut gst::ffi::GstObject = element.upcast_ref::<gst::Object>().to_glib_none().0;
        let binding =
            gst_direct_control_binding_new_absolute(object, property.as_ptr(), source.to_glib_none().0);
        (from_glib_none(binding), source)
    };
    element.add_control_binding(&binding).unwrap();
}
