// SPDX-License-Identifier: MPL-2.0
//! Puts the commit and the release date, which GStreamer shows for a plugin, into the environment of the build.

fn main() {
    #[cfg(feature = "gst")]
    gst_plugin_version_helper::info();
}
