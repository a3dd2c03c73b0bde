// SPDX-License-Identifier: MPL-2.0
//! The debug category of the element.

use std::sync::LazyLock;

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("superpixel", gst::DebugColorFlags::empty(), Some("Superpixel segmentation"))
});
